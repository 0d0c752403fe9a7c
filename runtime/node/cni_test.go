package node

import "testing"

// TestCNICleanUp checks that the rules and chains of the network are removed, and the shared ones if no other network
// has ports. Rules of other programs stay.
func TestCNICleanUp(t *testing.T) {
	const head = `*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CNI-DN-aaaa - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-MASQ - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
:CNI-bbbb - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A POSTROUTING -s 10.89.1.2/32 -m comment --comment "name: \"podctl01\" id: \"x\"" -j CNI-bbbb
-A POSTROUTING -s 192.168.0.0/16 -j MASQUERADE
-A CNI-DN-aaaa -s 10.89.1.0/24 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"podctl01\" id: \"x\"" -m multiport --dports 8080 -j CNI-DN-aaaa
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
-A CNI-bbbb -d 10.89.1.0/24 -m comment --comment "name: \"podctl01\" id: \"x\"" -j ACCEPT
`
	const other = `-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"theirs\" id: \"y\"" ` +
		"-m multiport --dports 9090 -j CNI-DN-cccc\n"
	for name, c := range map[string]struct{ text, want string }{
		"alone": {head + "COMMIT\n", `*nat
-D POSTROUTING -s 10.89.1.2/32 -m comment --comment "name: \"podctl01\" id: \"x\"" -j CNI-bbbb
-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-D POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-F CNI-DN-aaaa
-F CNI-HOSTPORT-DNAT
-F CNI-HOSTPORT-MASQ
-F CNI-HOSTPORT-SETMARK
-F CNI-bbbb
-X CNI-DN-aaaa
-X CNI-HOSTPORT-DNAT
-X CNI-HOSTPORT-MASQ
-X CNI-HOSTPORT-SETMARK
-X CNI-bbbb
COMMIT
`},
		"beside another network": {head + other + "COMMIT\n", `*nat
-D POSTROUTING -s 10.89.1.2/32 -m comment --comment "name: \"podctl01\" id: \"x\"" -j CNI-bbbb
-D CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"podctl01\" id: \"x\"" -m multiport --dports 8080 -j CNI-DN-aaaa
-F CNI-DN-aaaa
-F CNI-bbbb
-X CNI-DN-aaaa
-X CNI-bbbb
COMMIT
`},
		"no CNI":   {"*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j ACCEPT\nCOMMIT\n", ""},
		"no table": {"", ""},
	} {
		if got := cniCleanUp(c.text, "podctl01"); got != c.want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
