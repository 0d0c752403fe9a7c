package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"
)

// nodesGroup is the group of all nodes.
const nodesGroup = "system:nodes"

// userOf returns the user name of a node.
func userOf(node string) string { return "system:node:" + node }

func subjectOf(node string) pkix.Name {
	return pkix.Name{CommonName: userOf(node), Organization: []string{nodesGroup}}
}

// servingTemplate returns the request for the certificate of a node's server, with all addresses of the Node in a
// stable order. It is nil if no address is an IP, because a signer would refuse it (kubelet: newGetTemplateFn,
// addressesToHostnamesAndIPs).
func servingTemplate(node string, addresses []v1.NodeAddress) *x509.CertificateRequest {
	var names, ips []string
	for _, a := range addresses {
		ip := netutils.ParseIPSloppy(a.Address)
		isDNS := a.Type == v1.NodeInternalDNS || a.Type == v1.NodeExternalDNS
		switch {
		case a.Address == "":
		case isDNS || a.Type == v1.NodeHostName && ip == nil:
			names = append(names, a.Address)
		case ip != nil:
			ips = append(ips, ip.String())
		}
	}
	if len(ips) == 0 {
		return nil
	}
	slices.Sort(names)
	slices.Sort(ips)
	r := &x509.CertificateRequest{Subject: subjectOf(node), DNSNames: slices.Compact(names)}
	for _, ip := range slices.Compact(ips) {
		r.IPAddresses = append(r.IPAddresses, net.ParseIP(ip))
	}
	return r
}

// checkPair returns the certificate of a signed pair in PEM format, or an error if it does not fit the request. The
// library would replace such a certificate at once, and again and again.
func checkPair(cert, key []byte, request *x509.CertificateRequest, use x509.ExtKeyUsage, now time.Time) error {
	if len(cert) > pemMax {
		return fmt.Errorf("the certificate has more than %d bytes", pemMax)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	leaf, subject := pair.Leaf, request.Subject
	missing := slices.DeleteFunc(namesOf(request.DNSNames, request.IPAddresses), func(name string) bool {
		return slices.Contains(namesOf(leaf.DNSNames, leaf.IPAddresses), name)
	})
	switch {
	case leaf.Subject.CommonName != subject.CommonName:
		return fmt.Errorf("the certificate is for %q instead of %q", leaf.Subject.CommonName, subject.CommonName)
	case !slices.Contains(leaf.Subject.Organization, nodesGroup):
		return fmt.Errorf("the certificate is not for the group %s", nodesGroup)
	case !slices.Contains(leaf.ExtKeyUsage, use) && !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		return fmt.Errorf("the certificate is for another use")
	case len(missing) > 0:
		return fmt.Errorf("the certificate is not for %s", strings.Join(missing, ", "))
	case !now.Before(leaf.NotAfter):
		return fmt.Errorf("the certificate has expired at %s: check the clocks of the machines",
			leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

func namesOf(names []string, ips []net.IP) []string {
	all := slices.Clone(names)
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return all
}
