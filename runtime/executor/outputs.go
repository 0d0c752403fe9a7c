package executor

import (
	"maps"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// outputs are the results of steps for the steps after them: objects that did not exist when the plan was made. Steps
// read and write them concurrently.
type outputs struct {
	mu sync.Mutex
	sb sandboxOutput
	// images are the known images, by reference.
	images map[string]model.Image
	// started holds the IDs of containers by name.
	started map[string]string
	// created holds the replacements that were created before their start, by step.
	created map[string]creation
}

// sandboxOutput is the sandbox in which containers of this pass start.
type sandboxOutput struct {
	model.Sandbox
	config *runtimeapi.PodSandboxConfig
}

// creation is the result of creating a replacement before its start.
type creation struct {
	id  string
	err error
}

func newOutputs(p *plan.Plan, observed *model.Observed) *outputs {
	o := &outputs{images: map[string]model.Image{}, started: map[string]string{}, created: map[string]creation{}}
	maps.Copy(o.images, observed.Images)
	o.sb.ID = p.SandboxID
	if s := observed.SandboxOf(p.SandboxID); s != nil {
		o.sb.Sandbox = *s
	}
	return o
}

func (o *outputs) sandbox() sandboxOutput {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sb
}

// useConfig sets the message of the sandbox if it is not known yet, and returns the sandbox.
func (o *outputs) useConfig(config *runtimeapi.PodSandboxConfig) sandboxOutput {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sb.config == nil {
		o.sb.config = config
	}
	return o.sb
}

func (o *outputs) setSandbox(s sandboxOutput) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sb = s
}

func (o *outputs) allImages() map[string]model.Image {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.images)
}

func (o *outputs) setImage(name string, image model.Image) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.images[name] = image
}

// startedID returns the ID of a container that this pass started; empty for any other.
func (o *outputs) startedID(name string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.started[name]
}

func (o *outputs) setStarted(name, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started[name] = id
}

func (o *outputs) dropStarted(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.started, name)
}

func (o *outputs) allStarted() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.started)
}

func (o *outputs) setCreated(step string, made creation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.created[step] = made
}

// takeCreated returns the container created for a step, once.
func (o *outputs) takeCreated(step string) (creation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	made, ok := o.created[step]
	delete(o.created, step)
	return made, ok
}
