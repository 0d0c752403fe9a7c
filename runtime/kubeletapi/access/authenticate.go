package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
)

// newAuthenticator returns the authenticator of a kubelet (apiserver: DelegatingAuthenticatorConfig). It returns an
// error if the file of the certificate authorities cannot be used.
func newAuthenticator(a *Access) (authenticator.Request, error) {
	var all []authenticator.Request
	if a.ClientCAFile != "" {
		cas := &clientCAs{path: a.ClientCAFile, log: a.Log}
		if err := cas.load(); err != nil {
			return nil, err
		}
		all = append(all, x509.NewDynamic(cas.options, x509.CommonNameUserConversion))
	}
	t := &tokens{access: a, known: newMemory(a.TokenTTL, a.TokenTTL), limit: newLimit()}
	all = append(all, bearertoken.New(t), websocket.NewProtocolAuthenticator(t))
	authenticated := group.NewAuthenticatedGroupAdder(union.New(all...))
	if a.Anonymous {
		return union.NewFailOnError(authenticated, anonymous.NewAuthenticator(nil)), nil
	}
	return authenticated, nil
}

// tokenMax limits the size of a token in bytes. Each new one is part of a request to the API server.
const tokenMax = 64 << 10

// tokens authenticates by tokens.
type tokens struct {
	access *Access
	known  *memory
	limit  *limit
}

// AuthenticateToken returns the user of a token. Only an answer of the API server is remembered.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if len(token) > tokenMax {
		return nil, false, errors.New("the token is too large")
	}
	sum := sha256.Sum256([]byte(token))
	key := string(sum[:])
	found, err := t.known.get(ctx, key, func(ctx context.Context) (answer, error) {
		if !t.known.wasAccepted(key) && !t.limit.allow(originOf(ctx)) {
			return answer{}, ErrTooMany
		}
		user, err := t.access.Reviews.Token(ctx, token)
		return answer{accepted: user != nil, user: user}, err
	})
	if err != nil || !found.accepted {
		if err != nil && !errors.Is(err, ErrTooMany) {
			t.access.warn("a token", err)
		}
		return nil, false, err
	}
	return &authenticator.Response{User: found.user}, true, nil
}

// originKey is the key of a client's address in a context.
type originKey struct{}

// withOrigin returns a request whose context has the address of the client.
func withOrigin(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), originKey{}, Origin(r.RemoteAddr)))
}

func originOf(ctx context.Context) netip.Addr {
	origin, _ := ctx.Value(originKey{}).(netip.Addr)
	return origin
}

// Origin returns the address by which limits tell clients apart: the address without its port. IPv6 clients can use
// any address of their network, so it is that of the network.
func Origin(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}
