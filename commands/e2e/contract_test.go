package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// subject is a runtime under test. Its image has one program. With the command Forever it runs until it is stopped, and
// with Stubborn until it is killed. With Once it exits with code 0.
type subject struct {
	Runtime                 runtimeapi.RuntimeServiceClient
	Images                  runtimeapi.ImageServiceClient
	Image                   string
	Forever, Stubborn, Once []string
	// LogDir is a directory for logs, CgroupParent a cgroup for the sandboxes.
	LogDir, CgroupParent string
	// Tick advances the clock of a runtime with a simulated clock.
	Tick func()
	// StopsAtOnce and Silent are set for the runtime in memory. Its stops take no time, and its running containers
	// write no logs.
	StopsAtOnce, Silent bool
}

// contract checks that a runtime has the behaviour that podctl relies on. The runtime in memory and real ones must pass
// the same checks.
func contract(t *testing.T, s subject) {
	t.Helper()
	for _, one := range []struct {
		name string
		test func(*testing.T, *subject)
	}{
		{"names are reserved", contractNames},
		{"container lifecycle", contractLife},
		{"missing objects", contractAbsent},
		{"lists are filtered", contractLists},
		{"a sandbox's end", contractSandboxEnd},
		{"resources change in place", contractUpdate},
		{"images", contractImages},
		{"records are removed while their sandbox stops", contractRemovalBesideStop},
		{"a container is created during a stop", contractCreationBesideStop},
		{"events", contractEvents},
		{"logs", contractLogs},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, &s) })
	}
}

func (s *subject) sandboxConfig(name string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "contract", Uid: "uid-" + name},
		LogDirectory: s.LogDir,
		Labels:       map[string]string{"contract": name},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: s.CgroupParent,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{
					Network: runtimeapi.NamespaceMode_POD, Pid: runtimeapi.NamespaceMode_CONTAINER,
				},
			},
		},
	}
}

func (s *subject) sandbox(t *testing.T, name string) (id string, config *runtimeapi.PodSandboxConfig) {
	t.Helper()
	config = s.sandboxConfig(name)
	reply, err := s.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	id = reply.GetPodSandboxId()
	t.Cleanup(func() {
		_, _ = s.Runtime.StopPodSandbox(context.Background(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		if _, err := s.Runtime.RemovePodSandbox(context.Background(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
			t.Error(err)
		}
	})
	return id, config
}

func (s *subject) create(
	t *testing.T, sandbox string, config *runtimeapi.PodSandboxConfig, name string, command []string,
) (string, error) {
	t.Helper()
	reply, err := s.Runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox, SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{
			Metadata:    &runtimeapi.ContainerMetadata{Name: name},
			Image:       &runtimeapi.ImageSpec{Image: s.Image},
			Command:     command,
			Labels:      map[string]string{"contract": config.GetMetadata().GetName(), "name": name},
			Annotations: map[string]string{"a": "b"},
			LogPath:     name + ".log",
			Linux: &runtimeapi.LinuxContainerConfig{
				Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 64 << 20},
			},
		},
	})
	return reply.GetContainerId(), err
}

func (s *subject) start(
	t *testing.T, sandbox string, config *runtimeapi.PodSandboxConfig, name string, command []string,
) string {
	t.Helper()
	id, err := s.create(t, sandbox, config, name, command)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.state(t, id); got != runtimeapi.ContainerState_CONTAINER_CREATED {
		t.Errorf("a new container is %s", got)
	}
	if _, err := s.Runtime.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *subject) status(t *testing.T, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	reply, err := s.Runtime.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetStatus()
}

func (s *subject) state(t *testing.T, id string) runtimeapi.ContainerState {
	t.Helper()
	return s.status(t, id).GetState()
}

// ended waits until a container has exited.
func (s *subject) ended(t *testing.T, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if st := s.status(t, id); st.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return st
		}
		s.Tick()
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("container %s does not end", id)
	return nil
}

func contractNames(t *testing.T, s *subject) {
	id, config := s.sandbox(t, "names")
	_, err := s.Runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err == nil || !strings.Contains(err.Error(), "is reserved for") {
		t.Errorf("the same sandbox again: %v", err)
	}
	if _, err = s.create(t, id, config, "one", s.Forever); err != nil {
		t.Fatal(err)
	}
	if _, err = s.create(t, id, config, "one", s.Forever); err == nil ||
		!strings.Contains(err.Error(), "is reserved for") {
		t.Errorf("the same container again: %v", err)
	}
}

func contractLife(t *testing.T, s *subject) {
	sandbox, config := s.sandbox(t, "life")
	id := s.start(t, sandbox, config, "forever", s.Forever)
	st := s.status(t, id)
	if st.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || st.GetStartedAt() == 0 ||
		st.GetFinishedAt() != 0 ||
		st.GetAnnotations()["a"] != "b" || st.GetLabels()["name"] != "forever" || st.GetImageRef() == "" {
		t.Errorf("a running container: %v", st)
	}
	_, err := s.Runtime.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 2})
	if err != nil {
		t.Fatal(err)
	}
	// containerd 2 may answer before it has recorded the end, if the shim ended during the request.
	if st = s.ended(t, id); st.GetFinishedAt() == 0 {
		t.Errorf("a stopped container: %v", st)
	}
	if _, err := s.Runtime.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id}); err == nil {
		t.Error("a stopped container was started again")
	}
	once := s.ended(t, s.start(t, sandbox, config, "once", s.Once))
	if once.GetExitCode() != 0 || once.GetReason() != "Completed" {
		t.Errorf("a container that exited with 0: %v", once)
	}
}

func contractAbsent(t *testing.T, s *subject) {
	absent := strings.Repeat("0", 64)
	_, err := s.Runtime.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: absent})
	if status.Code(err) != codes.NotFound {
		t.Errorf("the status of no container: %v", err)
	}
	_, err = s.Runtime.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: absent})
	if status.Code(err) != codes.NotFound {
		t.Errorf("the status of no sandbox: %v", err)
	}
	_, err = s.Runtime.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: absent})
	if err != nil {
		t.Errorf("removing no container: %v", err)
	}
	_, err = s.Runtime.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: absent})
	if err != nil {
		t.Errorf("removing no sandbox: %v", err)
	}
	// containerd returns NotFound before 2.0, and no error after.
	_, err = s.Runtime.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: absent})
	if err != nil && status.Code(err) != codes.NotFound {
		t.Errorf("stopping no sandbox: %v", err)
	}
	if _, err := s.create(t, absent, s.sandboxConfig("absent"), "c", s.Forever); err == nil {
		t.Error("a container was created without a sandbox")
	}
}

func contractLists(t *testing.T, s *subject) {
	sandbox, config := s.sandbox(t, "lists")
	other, otherConfig := s.sandbox(t, "others")
	id := s.start(t, sandbox, config, "a", s.Forever)
	s.start(t, other, otherConfig, "a", s.Forever)
	byLabel, err := s.Runtime.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"contract": "lists"}},
	})
	if err != nil || len(byLabel.GetContainers()) != 1 || byLabel.GetContainers()[0].GetId() != id ||
		byLabel.GetContainers()[0].GetPodSandboxId() != sandbox {
		t.Errorf("containers by label: %v %v", byLabel, err)
	}
	bySandbox, err := s.Runtime.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{PodSandboxId: sandbox},
	})
	if err != nil || len(bySandbox.GetContainers()) != 1 || bySandbox.GetContainers()[0].GetId() != id {
		t.Errorf("containers by sandbox: %v %v", bySandbox, err)
	}
	sandboxes, err := s.Runtime.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"contract": "lists"}},
	})
	if err != nil || len(sandboxes.GetItems()) != 1 || sandboxes.GetItems()[0].GetId() != sandbox {
		t.Errorf("sandboxes by label: %v %v", sandboxes, err)
	}
}

func contractSandboxEnd(t *testing.T, s *subject) {
	sandbox, config := s.sandbox(t, "end")
	id := s.start(t, sandbox, config, "a", s.Forever)
	reply, err := s.Runtime.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil || reply.GetStatus().GetState() != runtimeapi.PodSandboxState_SANDBOX_READY ||
		reply.GetStatus().GetNetwork().GetIp() == "" {
		t.Errorf("a new sandbox: %v %v", reply, err)
	}
	for range 2 {
		if _, err = s.Runtime.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.state(t, id); got != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("the container of a stopped sandbox is %s", got)
	}
	reply, err = s.Runtime.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil || reply.GetStatus().GetState() != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("a stopped sandbox: %v %v", reply, err)
	}
	if _, err = s.create(t, sandbox, config, "b", s.Forever); err == nil {
		t.Error("a container was created in a stopped sandbox")
	}
}

func contractUpdate(t *testing.T, s *subject) {
	sandbox, config := s.sandbox(t, "update")
	id := s.start(t, sandbox, config, "a", s.Forever)
	_, err := s.Runtime.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: id, Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 32 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.status(t, id).GetResources().GetLinux().GetMemoryLimitInBytes(); got != 32<<20 {
		t.Errorf("memory limit %d after the update", got)
	}
}

func contractImages(t *testing.T, s *subject) {
	present, err := s.Images.ImageStatus(t.Context(),
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: s.Image}})
	if err != nil || present.GetImage().GetId() == "" {
		t.Errorf("the image: %v %v", present, err)
	}
	absent, err := s.Images.ImageStatus(t.Context(),
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: "absent.local/none:1"}})
	if err != nil || absent.GetImage() != nil {
		t.Errorf("no image: %v %v", absent, err)
	}
	list, err := s.Images.ListImages(t.Context(), &runtimeapi.ListImagesRequest{})
	if err != nil || len(list.GetImages()) == 0 {
		t.Errorf("images: %v %v", list, err)
	}
}
