package netfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The attributes of messages that Watch reads (linux/netfilter/nf_tables.h).
const (
	// attrTable is the name of the table in messages of tables, chains, rules and sets.
	attrTable = 1
	// attrProcess is the name of the process that made a transaction, in the message that ends it (NFTA_GEN_PROC_NAME).
	attrProcess = 3
)

// Watch calls changed whenever another program changes podctl's tables, for example with `nft flush ruleset`. It does
// not call changed for podctl's own changes. It returns when the context ends, or with an error of the kernel.
func (Kernel) Watch(ctx context.Context, changed func()) error {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return fmt.Errorf("watching nftables: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close() //nolint:errcheck // nothing was written
	if err = conn.JoinGroup(unix.NFNLGRP_NFTABLES); err != nil {
		return fmt.Errorf("watching nftables: %w", err)
	}
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		return fmt.Errorf("watching nftables: %w", err)
	}
	w := watch{own: string(bytes.TrimSpace(own))}
	for {
		messages, err := conn.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENOBUFS):
			changed() // Messages were lost.
			continue
		case err != nil:
			return fmt.Errorf("watching nftables: %w", err)
		}
		for i := range messages {
			if w.take(&messages[i]) {
				changed()
			}
		}
	}
}

// watch follows the transactions of nftables. A transaction is a series of messages that ends with a new generation.
type watch struct {
	// own is the name of this program. mine reports whether the transaction has changed podctl's tables.
	own  string
	mine bool
}

// take processes the next message. It reports whether the message ends a transaction of another program that changed
// podctl's tables.
func (w *watch) take(m *netlink.Message) bool {
	const header = 4 // struct nfgenmsg
	if m.Header.Type>>8 != unix.NFNL_SUBSYS_NFTABLES || len(m.Data) < header {
		return false
	}
	if uint16(m.Header.Type&0xff) != unix.NFT_MSG_NEWGEN {
		w.mine = w.mine || strings.HasPrefix(attribute(m.Data[header:], attrTable), tablePrefix)
		return false
	}
	mine := w.mine
	w.mine = false
	return mine && attribute(m.Data[header:], attrProcess) != w.own
}

// attribute returns the text of an attribute. It is empty if the message has none.
func attribute(data []byte, number uint16) string {
	decoder, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return ""
	}
	for decoder.Next() {
		if decoder.Type() == number {
			return decoder.String()
		}
	}
	return ""
}
