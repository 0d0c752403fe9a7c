package load

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// unresolvedProblems lists what is unresolved at its place in the manifest, and the pull secrets
// that are missing, which only matter to a private registry.
func unresolvedProblems(o *object, d *podspec.Desired) []document.Problem {
	var problems []document.Problem
	for _, r := range d.Unresolved() {
		problems = append(problems, o.report.At(document.ClassUnresolved, r.Path, r.Detail))
	}
	for i, ref := range d.Pod.Spec.ImagePullSecrets {
		if d.Objects.Secrets[ref.Name] == nil {
			problems = append(problems, o.report.At(document.ClassUnresolved, fieldpath.Index("spec.imagePullSecrets", i), noPullSecret(d, ref.Name)))
		}
	}
	return problems
}

func noPullSecret(d *podspec.Desired, name string) string {
	return fmt.Sprintf("Secret %s/%s is missing; images are pulled without it", d.Pod.Namespace, name)
}

// missingPullSecrets has the pull secrets that are missing as notes. No plan has them: they hold
// nothing.
func missingPullSecrets(o *object, d *podspec.Desired) []document.Note {
	var notes []document.Note
	for i, ref := range d.Pod.Spec.ImagePullSecrets {
		if d.Objects.Secrets[ref.Name] == nil {
			notes = append(notes, o.report.Note(o.key(), fieldpath.Index("spec.imagePullSecrets", i), noPullSecret(d, ref.Name)))
		}
	}
	return notes
}

// pullSecretNotes lists pull secrets that are there and hold no credentials: pulls go on
// without them.
func pullSecretNotes(o *object, d *podspec.Desired) []document.Note {
	var notes []document.Note
	for i, ref := range d.Pod.Spec.ImagePullSecrets {
		secret := d.Objects.Secrets[ref.Name]
		if secret == nil || podspec.PullSecretFault(secret) == "" {
			continue
		}
		path := fieldpath.Index("spec.imagePullSecrets", i)
		notes = append(notes, o.report.Note(o.key(), path,
			fmt.Sprintf("images are pulled without Secret %s/%s: %s", d.Pod.Namespace, ref.Name, podspec.PullSecretFault(secret))))
	}
	return notes
}
