package lifecycle

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// refuseClusterPods refuses pods that belong to the API server. The error has one line for each, with the kubectl
// command that instead returns.
func refuseClusterPods(sess *session.Session, pods []*podspec.Desired, instead func(*podspec.Desired) string) error {
	var errs []error
	for _, d := range pods {
		if isClusterPod(sess, d) {
			errs = append(errs, fmt.Errorf("pod %s belongs to the API server: run `%s`",
				model.RefOf(d.Pod), instead(d)))
		}
	}
	return errors.Join(errs...)
}

// isClusterPod reports whether the API server owns a pod: a stored one, or that with the uid of a manifest. A manifest
// without a uid is another pod, whatever its name.
func isClusterPod(sess *session.Session, d *podspec.Desired) bool {
	if d.FromCluster() {
		return true
	}
	if d.Stored || d.Rebuilt || d.WrittenUID == "" {
		return false
	}
	c, err := sess.Flags.Layout().Pod(d.Pod.UID).Checkpoint().Read()
	return err == nil && c.Applied != nil && c.Applied.FromCluster()
}

// kubectlApply returns the kubectl command that applies a manifest, or changes a stored pod.
func kubectlApply(d *podspec.Desired) string {
	if d.Stored {
		return kubectl(d.Pod.Namespace, "edit pod "+d.Pod.Name)
	}
	return kubectl(d.Pod.Namespace, "apply -f "+shellWord(d.Source))
}

// kubectlDelete returns the kubectl command for the same deletion.
func (o *deleteOptions) kubectlDelete(d *podspec.Desired) string {
	return kubectl(d.Pod.Namespace, "delete pod "+d.Pod.Name+o.kubectlGrace())
}

func (o *deleteOptions) kubectlGrace() string {
	switch {
	case o.force:
		return " --grace-period=0 --force"
	case o.grace >= 0:
		return " --grace-period=" + strconv.FormatInt(o.grace, 10)
	}
	return ""
}

func kubectl(namespace, rest string) string { return "kubectl -n " + namespace + " " + rest }

// shellWord quotes a word for a shell, unless it has only characters without a meaning there.
func shellWord(text string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("@%+=:,./_-", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// withCluster adds to a not-found error that the workload exists in the API server, because a pod of it is on this
// node. rest is the kubectl command without the namespace and the workload.
func withCluster(sess *session.Session, key state.ObjectKey, err error, rest string) error {
	if missing := (*objects.NotFoundError)(nil); !errors.As(err, &missing) {
		return err
	}
	applied, listErr := selection.Applied(sess)
	if listErr != nil {
		return err
	}
	for _, d := range applied {
		if d.FromCluster() && clusterOwns(key, d) {
			return fmt.Errorf("%w; the API server has it: run `%s %s/%s`",
				err, kubectl(key.Namespace, rest), key.Word(), key.Name)
		}
	}
	return err
}

// clusterOwns reports whether a workload of the API server owns a pod: directly, or through the object that its
// controller names after it.
func clusterOwns(key state.ObjectKey, d *podspec.Desired) bool {
	owner := metav1.GetControllerOf(d.Pod)
	if owner == nil || d.Pod.Namespace != key.Namespace {
		return false
	}
	suffix, named := strings.CutPrefix(owner.Name, key.Name+"-")
	switch {
	case owner.Kind == key.Kind:
		return owner.Name == key.Name
	case key.Kind == podspec.KindDeployment && owner.Kind == podspec.KindReplicaSet:
		return named && suffix == d.Pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	case key.Kind == podspec.KindCronJob && owner.Kind == podspec.KindJob:
		_, err := strconv.ParseUint(suffix, 10, 64)
		return named && err == nil
	}
	return false
}
