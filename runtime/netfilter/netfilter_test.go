package netfilter

import (
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// message returns an nftables message with one attribute.
func message(t *testing.T, kind, attr uint16, text string) *netlink.Message {
	t.Helper()
	encoder := netlink.NewAttributeEncoder()
	encoder.String(attr, text)
	data, err := encoder.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind)},
		Data:   append(make([]byte, 4), data...),
	}
}

// TestWatchedTransactions checks that only transactions of other programs that change podctl's tables count.
func TestWatchedTransactions(t *testing.T) {
	for name, test := range map[string]struct {
		kind    uint16
		table   string
		process string
		counts  bool
	}{
		"a flush":               {unix.NFT_MSG_DELTABLE, "podctl-12345678-guard", "nft", true},
		"a removed rule":        {unix.NFT_MSG_DELRULE, "podctl-12345678", "nft", true},
		"a removed chain":       {unix.NFT_MSG_DELCHAIN, "podctl-12345678", "firewalld", true},
		"a replacement":         {unix.NFT_MSG_DELTABLE, "podctl-12345678", "podctl", false},
		"another table":         {unix.NFT_MSG_DELTABLE, "filter", "nft", false},
		"a table with a prefix": {unix.NFT_MSG_DELTABLE, "podctl", "nft", false},
		"an added rule":         {unix.NFT_MSG_NEWRULE, "podctl-12345678-guard", "nft", true},
		"an addition elsewhere": {unix.NFT_MSG_NEWRULE, "filter", "nft", false},
	} {
		w := watch{own: "podctl"}
		if w.take(message(t, test.kind, attrTable, test.table)) {
			t.Errorf("%s counts before its transaction has ended", name)
		}
		if got := w.take(message(t, unix.NFT_MSG_NEWGEN, attrProcess, test.process)); got != test.counts {
			t.Errorf("%s counts: %t", name, got)
		}
		if w.take(message(t, unix.NFT_MSG_NEWGEN, attrProcess, "nft")) {
			t.Errorf("%s counts for the next transaction, too", name)
		}
	}
	w := watch{}
	if w.take(&netlink.Message{}) ||
		w.take(&netlink.Message{Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES << 8}, Data: []byte{1}}) {
		t.Error("a message that is none counts")
	}
}
