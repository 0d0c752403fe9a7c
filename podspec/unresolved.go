package podspec

import "fmt"

// unresolvedProblems reports what is unresolved at its place in the manifest,
// and pull secrets that are missing, which only matter to a private registry.
func unresolvedProblems(o *object, d *Desired) []Problem {
	var problems []Problem
	for _, r := range d.Unresolved() {
		problems = append(problems, o.report.at(ClassUnresolved, r.Path, r.Detail))
	}
	for i, ref := range d.Pod.Spec.ImagePullSecrets {
		if d.Objects.Secrets[ref.Name] == nil {
			problems = append(problems, o.report.at(ClassUnresolved, indexed("spec.imagePullSecrets", i),
				fmt.Sprintf("Secret %s/%s is not in the manifest; images are pulled without it", d.Pod.Namespace, ref.Name)))
		}
	}
	return problems
}

// pullSecretNotes tells of pull secrets that are there and of no use: a pull may fail for
// them, or take what anybody may have.
func pullSecretNotes(o *object, d *Desired) []Note {
	var notes []Note
	for i, ref := range d.Pod.Spec.ImagePullSecrets {
		secret := d.Objects.Secrets[ref.Name]
		if secret == nil || PullSecretFault(secret) == "" {
			continue
		}
		path := indexed("spec.imagePullSecrets", i)
		notes = append(notes, o.report.Note(o.key(), path,
			fmt.Sprintf("images are pulled without Secret %s/%s: %s", d.Pod.Namespace, ref.Name, PullSecretFault(secret))))
	}
	return notes
}
