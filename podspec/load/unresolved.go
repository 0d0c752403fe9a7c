package load

import (
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/fieldpath"
)

// reportMissing reports missing references of a pod at their positions. Pulls continue without their secrets, which
// only matter to a private registry. They are reported as notes, because a plan does not list missing or unusable pull
// secrets.
func (a *assembly) reportMissing(m *Manifest, o *object, d *podspec.Desired) {
	var problems []document.Problem
	for _, r := range d.Unresolved() {
		problems = append(problems, o.report.At(document.ClassUnresolved, r.Path, r.Detail))
	}
	for i, ref := range d.Pod.Spec.ImagePullSecrets {
		path, secret := fieldpath.Index("spec.imagePullSecrets", i), d.Objects.Secrets[ref.Name]
		if secret == nil {
			detail := fmt.Sprintf("Secret %s/%s is missing; images are pulled without it", d.Pod.Namespace, ref.Name)
			problems = append(problems, o.report.At(document.ClassUnresolved, path, detail))
			m.missing = append(m.missing, o.report.Note(o.key(), path, detail))
		} else if fault := podspec.PullSecretFault(secret); fault != "" {
			detail := fmt.Sprintf("images are pulled without Secret %s/%s: %s", d.Pod.Namespace, ref.Name, fault)
			a.notes = append(a.notes, o.report.Note(o.key(), path, detail))
		}
	}
	o.report.add(a.notDamaged(d, problems))
}
