package redaction

import (
	"encoding/base64"
	"testing"
)

// TestPasswordsInOrdinaryForms checks that passwords in common formats are found by themselves.
func TestPasswordsInOrdinaryForms(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIBszCCAVmgAwIBAgIUQ2xvdWQ\n-----END RSA PRIVATE KEY-----\n"
	for _, tt := range []struct{ secret, password string }{
		{"export A=x PASSWORD=swordfish", "swordfish"},
		{"https://ghp0123456789abc:x-oauth-basic@git.example.com", "ghp0123456789abc"},
		{"see https://web:swordfish@git.example.com/x for it", "swordfish"},
		{b64([]byte("swordfish-and-more")), "swordfish-and-more"},
		{b64([]byte(b64([]byte("swordfish-and-more")))), "swordfish-and-more"},
		{"users:\n- name: admin\n  user:\n    client-key-data: " + b64([]byte(pem)) + "\n", "MIIBszCCAVmgAwIBAgIUQ2xvdWQ"},
		{"Authorization: Basic " + b64([]byte("web:swordfish")), "swordfish"},
		{"//registry.example.com/:_auth=" + b64([]byte("web:swordfish")), "swordfish"},
		{"USER=0123456789abcdef0123456789abcdef\nPORT=80\n", "0123456789abcdef0123456789abcdef"},
		{"WEBHOOK_ENDPOINT=hooks.example/services/abc/0123456789abcdef\nPORT=80\n", "hooks.example/services/abc/0123456789abcdef"},
	} {
		if got := of(tt.secret).Text("it said " + tt.password + ", then ended"); got != "it said (secret), then ended" {
			t.Errorf("%q: %q", tt.secret, got)
		}
	}
}

// TestWordsOfProseStayReadable checks that the ordinary words of a value that is no document are not hidden elsewhere.
func TestWordsOfProseStayReadable(t *testing.T) {
	r := of(
		"listen on 10.0.0.10 port 5432 since 2026-01-02 with /var/pg15\nthen production starts",
		"machine db1.local login postgres password hunter22",
		"postgres://postgres:hunter22@db1.example.com:5432/orders",
		"export REGION=eu-west-1 BUCKET2=backups PASSWORD=hunter22",
		"DB_HOST=db1.example.com\nDB_USER=postgres\nDB_PASSWORD=hunter22\n",
		`{"access": "hunter22", "expires": "2026-05-04T09:00:00Z", "issued": "2026-05-04 08:00:00.5+02:00"}`,
	)
	for _, text := range []string{
		"lookup db1.example.com by 10.0.0.10:53: no such host", "production of postgres in eu-west-1 at 2026-01-02",
		"stat /var/pg15: no such file; its machine is db1.local", "BUCKET2 is backups",
		"level=INFO time=2026-05-04T09:01:02.345Z msg=started", "2026-05-04 08:00:01 started",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q\n  is %q", text, got)
		}
	}
}

// TestShortValuesAreIgnored checks that values that are too short without surrounding white space are ignored.
func TestShortValuesAreIgnored(t *testing.T) {
	if r := of("        ", " \n ab\t\n", "abc        "); r != nil {
		t.Errorf("%q", r.Text("         ab        "))
	}
}
