package imageaccess

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const image = "registry.local/team/app:1"

func secretOf(name, hash string) Secret {
	return Secret{UID: "uid-" + name, Namespace: "default", Name: name, CredentialHash: hash}
}

// pulls returns an image with a record of these pulls.
func pulls(t *testing.T, all ...Credentials) Image {
	t.Helper()
	found := Image{Name: image, Pulled: true}
	for _, c := range all {
		next, _, err := found.Record.With(image, "sha256:a", c, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		found.Record = next
	}
	return found
}

// TestUnverified has all policies in the columns. The results are those of a kubelet.
func TestUnverified(t *testing.T) {
	policies := []Policy{
		{Name: NeverVerify},
		{},
		{Name: NeverVerifyAllowlistedImages},
		{Name: NeverVerifyAllowlistedImages, Allowlist: "other,registry.local/team/*"},
		{Name: AlwaysVerify},
	}
	one := secretOf("one", "h1")
	bySecret, byNode := pulls(t, Of(&one)), pulls(t, Of(nil))
	renamed := bySecret
	renamed.Name = "team/app:1"
	unhashed := secretOf("one", "")
	noUID := Secret{Namespace: "default", Name: "one", CredentialHash: "h1"}
	changedNoUID := Secret{Namespace: "default", Name: "one", CredentialHash: "h2"}
	for name, c := range map[string]struct {
		image Image
		own   []Secret
		// want has an x for each policy with which the pod must pull the image.
		want string
	}{
		"preloaded, no secret":              {Image{Name: image}, nil, "..x.x"},
		"preloaded, any secret":             {Image{Name: image}, []Secret{one}, "..x.x"},
		"no secret":                         {bySecret, nil, ".xx.x"},
		"wrong secret":                      {bySecret, []Secret{secretOf("two", "h2")}, ".xx.x"},
		"same secret":                       {bySecret, []Secret{one}, "....."},
		"second secret":                     {bySecret, []Secret{secretOf("two", "h2"), one}, "....."},
		"same secret with new credentials":  {bySecret, []Secret{secretOf("one", "h2")}, "....."},
		"same credentials in another":       {bySecret, []Secret{secretOf("two", "h1")}, "....."},
		"same name, recreated":              {bySecret, []Secret{{UID: "new", Namespace: "default", Name: "one", CredentialHash: "h2"}}, ".xx.x"},
		"other namespace":                   {bySecret, []Secret{{UID: "uid-one", Namespace: "b", Name: "one", CredentialHash: "h2"}}, ".xx.x"},
		"credentials of the machine":        {byNode, nil, "....."},
		"a secret, then the machine":        {pulls(t, Of(&one), Of(nil)), nil, "....."},
		"the machine, then a secret":        {pulls(t, Of(nil), Of(&one)), nil, "....."},
		"two secrets":                       {pulls(t, Of(new(secretOf("two", "h2"))), Of(&one)), []Secret{secretOf("two", "h2")}, "....."},
		"secrets without hashes":            {pulls(t, Of(&unhashed)), []Secret{secretOf("two", "")}, ".xx.x"},
		"secrets of files with the name":    {pulls(t, Of(&noUID)), []Secret{changedNoUID}, ".xx.x"},
		"record of another name":            {renamed, []Secret{one}, ".xxxx"},
		"begun, or with unreadable records": {Image{Name: image, Pulled: true}, []Secret{one}, ".xx.x"},
	} {
		got := ""
		for _, p := range policies {
			got += map[bool]string{true: "x", false: "."}[p.Unverified(c.image, c.own)]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestRepository(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for name, want := range map[string]string{
		"nginx": "nginx", "nginx:1": "nginx", "r.local:5000/a": "r.local:5000/a", "r.local:5000/a:1" + digest: "r.local:5000/a",
		"r.local/a" + digest: "r.local/a", "Not A Name": "",
	} {
		if got, err := Repository(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

func TestCheck(t *testing.T) {
	list := NeverVerifyAllowlistedImages
	for _, p := range []Policy{{}, {Name: NeverVerify}, {Name: AlwaysVerify}, {Name: list}, {Name: list, Allowlist: "a,r.local/b,c/*"}} {
		if err := p.Check(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []Policy{
		{Name: "Foo"},
		{Allowlist: "a"},
		{Name: list, Allowlist: "a:1"},
		{Name: list, Allowlist: "a,,b"},
		{Name: list, Allowlist: "/*"},
		{Name: list, Allowlist: "a*"},
		{Name: list, Allowlist: "a/*/b"},
		{Name: list, Allowlist: "*"},
		{Name: list, Allowlist: "a, b"},
	} {
		if p.Check() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

// TestRecordIsThatOfAKubelet compares with a file of a kubelet 1.36.
func TestRecordIsThatOfAKubelet(t *testing.T) {
	const want = `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",` +
		`"lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"id","credentialMapping":{"registry.local/team/app":` +
		`{"kubernetesSecrets":[{"uid":"uid-a","namespace":"default","name":"a","credentialHash":"h"}]}}}`
	now := time.Date(2024, 10, 21, 12, 26, 40, 5, time.UTC)
	r, changed, err := (*Record)(nil).With(image, "id", Of(new(secretOf("a", "h"))), now)
	text, _ := json.Marshal(r)
	if err != nil || !changed || string(text) != want {
		t.Errorf("%v %s", err, text)
	}
	read, err := Decode(text, "id")
	if err != nil || fmt.Sprint(read) != fmt.Sprint(r) {
		t.Errorf("%+v %v", read, err)
	}
	if _, changed, _ = read.With(image, "id", Of(new(secretOf("a", "h"))), now); changed {
		t.Error("the same pull changes the record")
	}
	if next, changed, _ := read.With(image, "id", Of(new(secretOf("a", "h2"))), now); !changed ||
		len(next.CredentialMapping["registry.local/team/app"].KubernetesSecrets) != 1 {
		t.Errorf("changed credentials: %+v", next)
	}
	for _, bad := range []string{"", "{", "{}", strings.Replace(want, `"id"`, `"other"`, 1), strings.Replace(want, "Pulled", "Pull", 1)} {
		if r, err := Decode([]byte(bad), "id"); err == nil {
			t.Errorf("%s: %+v", bad, r)
		}
	}
	if got := string(Intent("a:1")); got != `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"a:1"}` {
		t.Errorf("intent %s", got)
	}
	// A kubelet with credential providers has recorded service accounts.
	text = []byte(strings.Replace(want, `"kubernetesSecrets"`, `"kubernetesServiceAccounts":[{"uid":"s"}],"kubernetesSecrets"`, 1))
	read, _ = Decode(text, "id")
	read, _, _ = read.With(image, "id", Of(new(secretOf("b", "h3"))), now)
	if text, _ = json.Marshal(read); !strings.Contains(string(text), `"kubernetesServiceAccounts":[{"uid":"s"}]`) {
		t.Errorf("service accounts are lost: %s", text)
	}
}
