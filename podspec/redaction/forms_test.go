package redaction

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"mime/quotedprintable"
	"strings"
	"testing"
)

// TestPasswordsInOrdinaryForms: the password in what programs commonly read is found by
// itself.
func TestPasswordsInOrdinaryForms(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIBszCCAVmgAwIBAgIUQ2xvdWQ\n-----END RSA PRIVATE KEY-----\n"
	for _, tt := range []struct{ secret, password string }{
		{"machine h login u password hunter22", "hunter22"},
		{"machine h login u password swordfish", "swordfish"},
		{"PASSWORD=hunter33 # prod", "hunter33"},
		{"A=x1\nPASSWORD=hunter33 # prod\n", "hunter33"},
		{"export A=x PASSWORD=swordfish", "swordfish"},
		{"password = swordfish ; old", "swordfish"},
		{"--user web --password swordfish", "swordfish"},
		{"mysql --password 'swordfish' orders", "swordfish"},
		{"password swordfish", "swordfish"},
		{"db.example.com:5432:orders:web:swordfish", "swordfish"},
		{"https://ghp0123456789abc:x-oauth-basic@git.example.com", "ghp0123456789abc"},
		{"see https://web:swordfish@git.example.com/x for it", "swordfish"},
		{b64([]byte("swordfish-and-more")), "swordfish-and-more"},
		{b64([]byte(b64([]byte("swordfish-and-more")))), "swordfish-and-more"},
		{hex.EncodeToString([]byte("swordfish-and-more")), "swordfish-and-more"},
		{"users:\n- name: admin\n  user:\n    client-key-data: " + b64([]byte(pem)) + "\n", "MIIBszCCAVmgAwIBAgIUQ2xvdWQ"},
		{"Authorization: Basic " + b64([]byte("web:swordfish")), "swordfish"},
		{"//registry.example.com/:_auth=" + b64([]byte("web:swordfish")), "swordfish"},
		{"USER=0123456789abcdef0123456789abcdef\nPORT=80\n", "0123456789abcdef0123456789abcdef"},
		{"WEBHOOK_ENDPOINT=hooks.example/services/abc/0123456789abcdef\nPORT=80\n", "hooks.example/services/abc/0123456789abcdef"},
		{"the token for it is t0k3n-77 today", "t0k3n-77"},
		{"user1,hunter22,x", "hunter22"},
	} {
		if got := of(tt.secret).Text("it said " + tt.password + ", then ended"); got != "it said (secret), then ended" {
			t.Errorf("%q: %q", tt.secret, got)
		}
	}
}

// TestWordsOfTextsStayReadable: the ordinary words of a value that is no document are found
// nowhere else.
func TestWordsOfTextsStayReadable(t *testing.T) {
	r := of(
		"listen on 10.0.0.10 port 5432 since 2026-01-02 with /var/pg15\nthen production starts",
		"machine db1.local login postgres password hunter22",
		"postgres://postgres:hunter22@db1.example.com:5432/orders",
		"export REGION=eu-west-1 BUCKET2=backups PASSWORD=hunter22",
		"DB_HOST=db1.example.com\nDB_USER=postgres\nDB_PASSWORD=hunter22\n",
	)
	for _, text := range []string{
		"lookup db1.example.com by 10.0.0.10:53: no such host", "production of postgres in eu-west-1 at 2026-01-02",
		"stat /var/pg15: no such file; its machine is db1.local", "BUCKET2 is backups",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q\n  is %q", text, got)
		}
	}
}

// TestBlanksAreNoValue: what is too short without the white space around it is not looked for.
func TestBlanksAreNoValue(t *testing.T) {
	if r := of("        ", " \n ab\t\n", "abc        "); r != nil {
		t.Errorf("%q", r.Text("         ab        "))
	}
}

// TestMoreFormsOfValues: lists of bytes, quoted-printable, and characters that are not seen.
func TestMoreFormsOfValues(t *testing.T) {
	for _, secret := range []string{odd, "hunt=r22", "kJ8vQ2mX9pLw4RtY7bNc"} {
		raw := []byte(secret)
		var qp bytes.Buffer
		w := quotedprintable.NewWriter(&qp)
		if _, err := w.Write([]byte("it is a longer line, so that it is broken: " + secret + secret)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		braces := strings.NewReplacer("ü", `\u{fc}`, "é", `\u{0000e9}`, "\x00", `\u{0}`, `\`, `\\`)
		for name, form := range map[string]string{
			"decimal": fmt.Sprintf("%d", raw), "Go": fmt.Sprintf("%#v", raw), "hex, blanks": fmt.Sprintf("% x", secret),
			"hex, colons": strings.ReplaceAll(fmt.Sprintf("% X", secret), " ", ":"), "braces": braces.Replace(secret),
			"JSON": strings.ReplaceAll(fmt.Sprintf("%d", raw), " ", ",\n  "), "quoted-printable": qp.String(),
		} {
			got := of(secret).Text("at 12:30:59 it was " + form + " of 3 4")
			if !strings.Contains(got, Hidden) || !strings.HasPrefix(got, "at 12:30:59 it ") || !strings.HasSuffix(got, " of 3 4") || leftOf(secret, got) != "" ||
				strings.Contains(got, fmt.Sprintf("% x", secret[1:5])) || strings.Contains(got, strings.Trim(fmt.Sprintf("%d", raw[1:5]), "[]")) {
				t.Errorf("%s: %q\n  is %q", name, form, got)
			}
		}
		if len(secret) < piece {
			continue
		}
		runes := []rune(secret)
		for name, between := range map[string]string{"zero width": "\u200b", "joiner": "\u2060", "colour": "\x1b[1;31m", "quoted colour": `\x1b[0m`} {
			form := string(runes[:7]) + between + string(runes[7:9]) + between + string(runes[9:])
			if got := of(secret).Text("it was " + form + "."); leftOf(secret, got) != "" {
				t.Errorf("%s: %q\n  is %q", name, form, got)
			}
		}
	}
}
