package machine

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/prometheus/procfs"
)

// established is the state of an open TCP connection in /proc/net.
const established = 0x01

// PeerUser returns the id of the user who owns the other end of a TCP connection within this machine. proc is where
// /proc is mounted. A connection that is being closed is an error, because the kernel lists user 0 for it.
func PeerUser(proc string, peer, own netip.AddrPort) (uint64, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return 0, err
	}
	four, err := fs.NetTCP()
	six, errSix := fs.NetTCP6()
	if err != nil && errSix != nil {
		return 0, err
	}
	is := func(address netip.AddrPort, ip []byte, port uint64) bool {
		found, ok := netip.AddrFromSlice(ip)
		return ok && found.Unmap() == address.Addr().Unmap() && port == uint64(address.Port())
	}
	for _, s := range slices.Concat(four, six) {
		if s.St == established && is(peer, s.LocalAddr, s.LocalPort) && is(own, s.RemAddr, s.RemPort) {
			return s.UID, nil
		}
	}
	return 0, fmt.Errorf("no process of this machine has an open connection from %s to %s", peer, own)
}
