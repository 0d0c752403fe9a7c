package redaction

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func of(values ...string) *Redactor {
	all := make([][]byte, 0, len(values))
	for _, value := range values {
		all = append(all, []byte(value))
	}
	return New(all...)
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// odd contains all characters that some format escapes.
const odd = "p&ss<w>rd \"quo'ted\"\tt\\ab %41+\x00ü/é=end"

// TestFormsOfValues checks that no part of a value is left, in any form.
func TestFormsOfValues(t *testing.T) {
	quoted := jsonOf(t, odd)
	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(odd); err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"as it is":       odd,
		"Go":             fmt.Sprintf("%q", odd),
		"Go, ASCII":      fmt.Sprintf("%+q", odd),
		"JSON":           quoted,
		"JSON, no HTML":  strings.TrimSpace(plain.String()),
		"JSON in JSON":   jsonOf(t, jsonOf(t, odd)),
		"three deep":     fmt.Sprintf("%q", jsonOf(t, fmt.Sprintf("exec: %q", odd))),
		"query":          url.QueryEscape(odd),
		"path":           url.PathEscape(odd),
		"query in Go":    fmt.Sprintf("%q", url.QueryEscape(odd)),
		"base64":         base64.StdEncoding.EncodeToString([]byte(odd)),
		"base64 for URL": base64.RawURLEncoding.EncodeToString([]byte(odd)),
		"base64 in text": base64.StdEncoding.EncodeToString([]byte("user:" + odd + "!")),
		"base64 twice":   base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("{" + odd)))),
		"base64 wrapped": wrapped(base64.StdEncoding.EncodeToString([]byte(odd)), 16),
		"base64 of JSON": base64.StdEncoding.EncodeToString([]byte(quoted)),
		"shell":          "'" + strings.ReplaceAll(odd, "'", `'\''`) + "'",
		"shell in JSON":  jsonOf(t, "'"+strings.ReplaceAll(odd, "'", `'"'"'`)+"'"),
		"YAML":           "'" + strings.ReplaceAll(odd, "'", "''") + "'",
		"two lines":      odd[:20] + "\n    " + odd[20:],
		"no control":     strings.ReplaceAll(odd, "\x00", ""),
		"no text":        strings.ReplaceAll(odd, "\x00", "\uFFFD"),
	} {
		for _, frame := range []string{"%s", "it failed: %s, sorry", "desc = exec: \"%s\": not found"} {
			got := of(odd, "other-secret").Text(fmt.Sprintf(frame, form))
			if left := leftOf(odd, got); left != "" {
				t.Errorf("%s: %q is left in %q", name, left, got)
			}
			if !strings.Contains(got, Hidden) {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// leftOf returns a run of five bytes of a value that is still in a text.
func leftOf(value, text string) string {
	for i := 0; i+5 <= len(value); i++ {
		if strings.Contains(text, value[i:i+5]) {
			return value[i : i+5]
		}
	}
	return ""
}

func wrapped(text string, width int) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + "\n")
		text = text[width:]
	}
	return b.String() + text
}

// TestPartsOfValues checks that the secrets in a document are found by themselves, and that the rest of the document is
// not.
func TestPartsOfValues(t *testing.T) {
	docker := jsonOf(t, map[string]any{"auths": map[string]any{"registry.example.com": map[string]string{
		"username":      "robot",
		"password":      "s3cr&t",
		"auth":          base64.StdEncoding.EncodeToString([]byte("robot:s3cr&t")),
		"identitytoken": "eyJhbGciOi",
	}}})
	pem := "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2xvdWQ\nc2lnbmVkQ2VydA==\n-----END CERTIFICATE-----\n"
	for _, tt := range []struct{ secret, text, want string }{
		{docker, "login to registry.example.com as robot:s3cr&t failed", "login to registry.example.com as (secret) failed"},
		{docker, "password s3cr&t, token eyJhbGciOi", "password (secret), token (secret)"},
		{docker, "password s3cr\\u0026t", "password (secret)"},
		{docker, `{"auths":{"registry.example.com":{}}}`, `{"auths":{"registry.example.com":{}}}`},
		{
			`{"db":{"host":"db.example.com","port":5432,"tls":true,"password":"xY7-open"}}`,
			"db.example.com:5432 true xY7-open",
			"db.example.com:5432 true (secret)",
		},
		{`{"a":["one-of-them"]}`, "says one-of-them.", "says (secret)."},
		{
			"db:\n  host: db.example.com\n  password: \"xY7-op\\u0065n\"\n",
			"db.example.com refused xY7-open",
			"db.example.com refused (secret)",
		},
		{"list:\n- first-item\n- |\n  block-text\n", "first-item block-text list", "(secret) (secret) list"},
		{
			"DB_HOST=db.example.com\n# why\nexport DB_PASSWORD='xY7-open'\n",
			"DB_PASSWORD of db.example.com is xY7-open",
			"DB_PASSWORD of db.example.com is (secret)",
		},
		{"[client]\nuser = admin\npassword = \"xY7-open\"\n", "[client] admin xY7-open", "[client] admin (secret)"},
		{"password=xY7-open", "with xY7-open", "with (secret)"},
		{"host=db.example.com user=web password=xY7", "host db", "host db"},
		{"host=db.example.com user=web password=xY7-open", "password is xY7-open", "password is (secret)"},
		{"Server=db;Password=xY7-open;", "password is xY7-open", "password is (secret)"},
		{"postgres://web:xY7%2Dopen@db.example.com:5432/app", "dial db.example.com:5432: xY7-open", "dial db.example.com:5432: (secret)"},
		{
			"postgres://web:xY7-open@db.example.com:5432/app",
			"cannot use postgres://web:xY7-open@db.example.com:5432/other",
			"cannot use postgres://(secret)@db.example.com:5432/other",
		},
		{"web:xY7-open@tcp(db:3306)/app", "with xY7-open", "with (secret)"},
		{
			"https://hooks.example.com/services/T0001/B0002/XXXXyyyy",
			"POST /services/T0001/B0002/XXXXyyyy to hooks.example.com",
			"POST /(secret) to hooks.example.com",
		},
		{pem, "-----BEGIN CERTIFICATE----- MIIBszCCAVmgAwIBAgIUQ2xvdWQ", "-----BEGIN CERTIFICATE----- (secret)"},
		{"first-line-of-it\nsecond-line-of-it", "got second-line-of-it", "got (secret)"},
		{`{"nested":"{\"password\":\"xY7-open\"}"}`, "with xY7-open", "with (secret)"},
	} {
		if got := of(tt.secret).Text(tt.text); got != tt.want {
			t.Errorf("%q\n  of %q\n  is %q\nwant %q", tt.text, tt.secret, got, tt.want)
		}
	}
}

// TestPiecesOfValues checks that the rest of a truncated value is found.
func TestPiecesOfValues(t *testing.T) {
	value := "kJ8vQ2mX9pLw4RtY7bNc3HsD6fGz1AeU"
	r := of(value, "unrelated-value")
	for _, tt := range []struct{ text, want string }{
		{"got " + value[:9], "got (secret)"},
		{"got " + value[:4], "got (secret)"},
		{value[len(value)-4:] + " was the end", "(secret) was the end"},
		{value[20:] + " was the end", "(secret) was the end"},
		{`said "` + value[:7] + `"`, `said "(secret)"`},
		{"said " + value[:7] + "… and more", "said (secret)… and more"},
		{"said " + value[:7] + "... and more", "said (secret)... and more"},
		{"said …" + value[25:] + " and more", "said …(secret) and more"},
		{"9" + value[25:] + " was the end", "9(secret) was the end"},
		{`u0022` + value[25:] + " was the end", "u0022(secret) was the end"},
		{"got " + value[:7] + `\u00`, `got (secret)\u00`},
		{"got " + value[:7] + "%2… more", "got (secret)%2… more"},
		{"the middle " + value[5:16] + " of it", "the middle (secret) of it"},
		{"the middle " + value[7:30] + " of it", "the middle (secret) of it"},
		{"too short " + value[5:12] + " in the middle", "too short " + value[5:12] + " in the middle"},
	} {
		if got := r.Text(tt.text); got != tt.want {
			t.Errorf("%q\n  is %q\nwant %q", tt.text, got, tt.want)
		}
	}
	for cut := 1; cut < len(value); cut++ {
		for name, form := range map[string]string{
			"plain": value, "Go": fmt.Sprintf("%q", odd+value), "base64": base64.StdEncoding.EncodeToString([]byte(value)),
		} {
			at := min(cut, len(form))
			for _, text := range []string{"it is " + form[:at], form[at:] + " it is", "it is " + form[:at] + "…"} {
				got := of(value, odd).Text(text)
				if left := runLeft(value, got); left != "" {
					t.Errorf("%s cut at %d: %q is left in %q", name, cut, left, got)
				}
			}
		}
	}
}

// runLeft returns a run of twelve bytes of a value that is still in a text.
func runLeft(value, text string) string {
	for i := 0; i+12 <= len(value); i++ {
		if strings.Contains(text, value[i:i+12]) {
			return value[i : i+12]
		}
	}
	return ""
}

// TestOrdinaryTextsStayReadable checks that an ordinary configuration in a Secret hides only its passwords.
func TestOrdinaryTextsStayReadable(t *testing.T) {
	r := of(
		"server:\n  host: db.example.com\n  port: 5432\n  level: info\n  mode: production\n  tls: true\n"+
			"  driver: postgres\npassword: Tr0ub4dor&3\n",
		"DB_USER=postgres\nDB_NAME=orders\nDB_TIMEOUT=30s\nDB_PASSWORD=Tr0ub4dor&3\n",
		"-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2xvdWQ\n-----END CERTIFICATE-----\n",
	)
	for _, text := range []string{
		"dial tcp: lookup db.example.com on 10.96.0.10:53: no such host",
		"failed to connect to `host=db.example.com user=postgres database=orders`: server error (FATAL: " +
			"password authentication failed for user \"postgres\" (SQLSTATE 28P01))",
		"rpc error: code = Unknown desc = failed to create containerd task: " +
			"failed to create shim task: OCI runtime create failed: exec: \"/bin/app\": stat /bin/app: no such file " +
			"or directory: unknown",
		"level=info msg=\"listening on :5432\" mode=production tls=true",
		"Readiness probe failed: HTTP probe failed with statuscode: 503",
		"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
		`{"level":"info","information":"production","driver":"postgres","host":"db.example.com"}`,
		"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 in 30s",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q\n  is %q", text, got)
		}
	}
	if got := r.Text("password=Tr0ub4dor&3 of db.example.com"); got != "password=(secret) of db.example.com" {
		t.Errorf("%q", got)
	}
}

// TestBinaryValues checks that a binary value is found in the forms that texts use for it.
func TestBinaryValues(t *testing.T) {
	raw := make([]byte, 32)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	value := string(raw)
	for name, form := range map[string]string{
		"Go": strings.Trim(fmt.Sprintf("%q", value), `"`), "base64": base64.StdEncoding.EncodeToString(raw), "raw": value,
	} {
		if got := of(value).Text("key " + form + " is"); got != "key "+Hidden+" is" && got != "key "+Hidden+"= is" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRedactingTwice checks that redacting a second time changes nothing, for any secret.
func TestRedactingTwice(t *testing.T) {
	r := of("secret", "(secret)x", "hunter2-hunter2")
	once := r.Text("the secret is hunter2-hunter2, and ((secret))")
	if twice := r.Text(once); twice != once || strings.Contains(once, "hunter2") {
		t.Errorf("%q, then %q", once, twice)
	}
}

// TestErrors checks that an error keeps its identity.
func TestErrors(t *testing.T) {
	r := of("hunter2")
	err := r.Error(fmt.Errorf("no hunter2: %w", io.EOF))
	if err.Error() != "no (secret): EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if other := errors.New("other"); r.Error(other) != other || r.Error(nil) != nil { //nolint:errorlint // the very same is meant
		t.Error("an error without a secret is another one")
	}
	var none *Redactor
	if none.Text("hunter2") != "hunter2" || !errors.Is(none.Error(io.EOF), io.EOF) || New([]byte("abc")) != nil {
		t.Error("a redactor of nothing redacts")
	}
}

// TestLargeValues checks secrets of a MiB, texts of many KiB, and both with few different bytes.
func TestLargeValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[random.IntN(64)]
	}
	var comb strings.Builder
	for comb.Len() < 1<<18 {
		fmt.Fprintf(&comb, "AAAAAAAA%04x", random.IntN(1<<16))
	}
	same, combed := strings.Repeat("a", 1<<18), comb.String()
	r := of(string(large), same, combed, strings.Repeat("\\", 1<<18), strings.Repeat("k=v1234567\n", 1<<13))
	for name, text := range map[string]string{
		"random":   string(large[:1<<17]),
		"the same": same[:1<<17],
		"combed":   combed[:1<<17],
		"base64":   base64.StdEncoding.EncodeToString(large[:1<<16]),
		"half":     string(large[7<<17:]),
	} {
		if got := r.Text("x " + text + " y"); got != "x "+Hidden+" y" && got != "x "+Hidden+"== y" && got != "x "+Hidden+"= y" {
			t.Errorf("%s: %.60q…", name, got)
		}
	}
	for _, text := range []string{
		strings.Repeat("%25", 1<<15),
		strings.Repeat(`\\`, 1<<16),
		strings.Repeat("b", 1<<17),
		strings.Repeat("…", 1<<15),
		strings.Repeat("\xff", 1<<16),
	} {
		if got := r.Text(text); got == "" {
			t.Errorf("nothing is left of %.20q", text)
		}
	}
}

// TestUTF8StaysValid checks that valid UTF-8 stays valid.
func TestUTF8StaysValid(t *testing.T) {
	r := of("geheimnis-über-alles-größer")
	for _, text := range []string{
		"é geheimnis-über-alles-größer é",
		"größer und so",
		"das ist geheimnis-ü",
		"geheimnis-über-alles-gr\xc3\xb6",
	} {
		if got := r.Text(text); !utf8.ValidString(got) || !strings.Contains(got, Hidden) {
			t.Errorf("%q", got)
		}
	}
}

func BenchmarkText(b *testing.B) {
	r := of("hunter2", `{"a":"some-longer-password","b":"kJ8vQ2mX9pLw4RtY7bNc3HsD6fGz1AeU"}`)
	text := "rpc error: code = Unknown desc = failed to create containerd task: " +
		"failed to create shim task: OCI runtime create failed: exec: \"/bin/app\": no such file"
	for b.Loop() {
		r.Text(text)
	}
}
