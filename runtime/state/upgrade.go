package state

import (
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
)

// WithoutSecrets is a copy of a journal that may leave the machine: digests stand for
// the values of Secrets.
func (j *Journal) WithoutSecrets() *Journal {
	without := *j
	without.EarlierSecrets = nil
	if j.Applied != nil {
		without.Applied = j.Applied.WithoutSecrets()
	}
	return &without
}

// upgradeDigests brings all digests of a journal into today's form. An older podctl wrote
// such as tell secret values to whoever tries them.
func (j *Journal) upgradeDigests() {
	for name, b := range j.Backoffs {
		b.Key = spechash.UpgradeKey(name, b.Key, j.Applied)
		j.Backoffs[name] = b
	}
	if j.Completion != nil {
		j.Completion.DesiredDigest = podspec.UpgradeDigest(j.Completion.DesiredDigest, j.Applied)
	}
}
