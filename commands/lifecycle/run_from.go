package lifecycle

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/wait"
	"github.com/podctl/podctl/runtime/workload"
)

// runFrom starts a run of a CronJob by hand, as kubectl create job --from does, and waits for its end.
func runFrom(ctx context.Context, sess *session.Session, o *runOptions, from string) (err error) {
	key, ok := selection.WorkloadNamed(from, sess.Flags.Namespace)
	if !ok || key.Kind != podspec.KindCronJob {
		return exit.Usagef("--from takes a CronJob, for example cronjob/backup")
	}
	r, err := sess.Workloads().Get(key)
	if err != nil {
		return err
	}
	sess.Loaded([]*podspec.Desired{r.Workload.Template})
	job := workload.JobOf(r.Workload, key.Name+"-manual-"+rand.String(5), time.Time{})
	o.wait, o.parallel = string(wait.Completed), 4
	err = o.applyWorkloads(ctx, sess, &selection.Found{Workloads: []*podspec.Workload{job}})
	if o.remove {
		err = errors.Join(err, removeJob(context.WithoutCancel(ctx), sess, controller.KeyOf(job)))
	}
	return err
}

// removeJob deletes a Job with its pods.
func removeJob(ctx context.Context, sess *session.Session, key state.ObjectKey) error {
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	if _, err = sess.Workloads().Delete(ctx, key); err != nil {
		return err
	}
	sess.AgentLooks(ctx)
	applied, _, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return err
	}
	var pods []model.PodRef
	for _, p := range controller.PodsOf(key, applied) {
		pods = append(pods, model.RefOf(p.Desired.Pod))
	}
	return DeletePods(ctx, sess, engine, pods)
}
