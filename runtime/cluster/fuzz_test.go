package cluster

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// FuzzKubeconfig checks that no kubeconfig is a panic, and that an accepted one names a server. As a bootstrap
// kubeconfig it gives the node a kubeconfig that is accepted too, and that has none of its credentials.
func FuzzKubeconfig(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://a:1'}}]\nusers: [{name: u, user: {token: secret}}]\n" +
			"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
		"apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://[::1]', certificate-authority-data: AA==}}]\n" +
			"users: [{name: u, user: {client-certificate-data: LS0t, client-key-data: LS0t, exec: {command: x}}}]\n" +
			"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
		`{"kind":"Config","apiVersion":"v1","current-context":"x","contexts":null}`, "a: &a [*a]", "kind: Pod", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parse("/etc/kubeconfig", text)
		if err != nil {
			return
		}
		if p.config.Host == "" {
			t.Fatal("without a server")
		}
		_ = checkCertificate(p.config, time.Unix(0, 0))
		dir := t.TempDir()
		s := &Settings{Kubeconfig: filepath.Join(dir, "kubeconfig"), Log: slog.New(slog.DiscardHandler)}
		if err = s.writeKubeconfig(p.cluster, filepath.Join(dir, "pair.pem")); err != nil {
			return
		}
		written, err := clientcmd.LoadFromFile(s.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range written.AuthInfos {
			if u.Token != "" || u.Password != "" || u.Exec != nil || len(u.ClientKeyData) > 0 {
				t.Fatalf("it has credentials: %+v", u)
			}
		}
		if err = checkCurrent(written); err != nil {
			t.Fatal(err)
		}
	})
}
