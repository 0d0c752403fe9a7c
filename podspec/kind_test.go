package podspec

import "testing"

// TestKinds checks that each word belongs to one kind, also with the kind's group after it.
func TestKinds(t *testing.T) {
	seen := map[string]string{}
	for _, kind := range Kinds() {
		for _, word := range kind.Words {
			if other := seen[word]; other != "" {
				t.Errorf("%s refers to %s and %s", word, other, kind.Name)
			}
			seen[word] = kind.Name
		}
		if KindNamed(kind.Name).APIVersion != kind.APIVersion || kind.APIVersion == "" {
			t.Errorf("%+v", kind)
		}
	}
	for word, want := range map[string]string{
		"po":               KindPod,
		"SVC":              KindService,
		"deployments.apps": KindDeployment,
		"cj":               KindCronJob,
		"jobs.batch":       KindJob,
		"jobs.apps":        "",
		"all":              "",
		"":                 "",
		"widgets":          "",
	} {
		if got := KindOfWord(word).Name; got != want {
			t.Errorf("%q is %q, want %q", word, got, want)
		}
	}
}
