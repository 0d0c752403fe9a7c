package machine

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// TestPeerUser checks who owns the other end of a connection. A closing connection does not count, because its line has
// user 0.
func TestPeerUser(t *testing.T) {
	proc := t.TempDir()
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	const rest = " 00000000:00000000 00:00000000 00000000 "
	for name, lines := range map[string]string{
		"tcp": head +
			"   0: 0100007F:2742 0100007F:1F90 01" + rest + "   0        0 1 1 0000000000000000 20 4 0 10 -1\n" + // the server's own end
			"   1: 0100007F:1F90 0100007F:2742 01" + rest + "1000        0 2 1 0000000000000000 20 4 0 10 -1\n" +
			"   2: 0100007F:1F91 0100007F:2742 05" + rest + "   0        0 0 1 0000000000000000 20 4 0 10 -1\n" +
			"   3: 0100007F:1F93 0200007F:2742 01" + rest + "   0        0 3 1 0000000000000000 20 4 0 10 -1\n",
		"tcp6": head +
			"   0: 0000000000000000FFFF00000100007F:1F92 0000000000000000FFFF00000100007F:2742 01" +
			rest + "1001        0 4 1 0000000000000000 20 4 0 10 -1\n",
	} {
		path := filepath.Join(proc, "net", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := netip.MustParseAddrPort("127.0.0.1:10050")
	for peer, want := range map[string]uint64{"127.0.0.1:8080": 1000, "127.0.0.1:8082": 1001} {
		if user, err := PeerUser(proc, netip.MustParseAddrPort(peer), own); err != nil || user != want {
			t.Errorf("%s: user %d, %v", peer, user, err)
		}
	}
	for name, peer := range map[string]string{
		"closing":            "127.0.0.1:8081",
		"to another address": "127.0.0.1:8083",
		"elsewhere":          "192.0.2.1:8080",
	} {
		if user, err := PeerUser(proc, netip.MustParseAddrPort(peer), own); err == nil {
			t.Errorf("%s: user %d", name, user)
		}
	}
	if _, err := PeerUser(filepath.Join(proc, "none"), own, own); err == nil {
		t.Error("a user is found without a table")
	}
}
