package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// hostilePod is a pod that a compromised API server could send.
type hostilePod struct {
	// yaml is merged into a pod with one container. change changes it afterwards.
	yaml   string
	change func(*v1.Pod)
	// objects are further objects of the API by their paths.
	objects map[string]apitest.Object
	// want is the phase in the API, and a part of the status or of an event. The phase "Log" stands for a line in the
	// log, because the API server cannot get the status of a pod with that name. "Gone" is a pod that the node deletes.
	want string
}

// escaped is in each name that leads to another directory.
const escaped = "podctl-escaped"

// up returns a path that leads out of directories of that depth.
func up(depth int) string { return strings.Repeat("../", depth) + escaped }

// hostileNames are pods with names that lead to other directories, belong to other pods, or are too long.
func hostileNames() map[string]hostilePod {
	return map[string]hostilePod{
		"uid-static": {want: "Pending: is given twice", change: func(p *v1.Pod) { p.UID = staticUID }},
		"uid-good":   {want: "Log: its uid", change: func(p *v1.Pod) { p.UID = goodUID }},
		"uid-path":   {want: "Failed: metadata.uid", change: func(p *v1.Pod) { p.UID = types.UID(up(3)) }},
		"uid-lines":  {want: "Failed: metadata.uid", change: func(p *v1.Pod) { p.UID = "a\nb\x1b[31m" }},
		"uid-long":   {want: "Failed: metadata.uid", change: func(p *v1.Pod) { p.UID = types.UID(strings.Repeat("a", 65)) }},
		"uid-lock":   {want: "Failed: metadata.uid", change: func(p *v1.Pod) { p.UID = "_agent" }},
		"name-path":  {want: "Log: metadata.name", change: func(p *v1.Pod) { p.Name = up(3) }},
		"name-lines": {want: "Log: metadata.name", change: func(p *v1.Pod) { p.Name = "a\nb\x1b[31m" }},
		"name-long":  {want: "Log: metadata.name", change: func(p *v1.Pod) { p.Name = strings.Repeat("a", 254) }},
		"namespace":  {want: "Log: metadata.namespace", change: func(p *v1.Pod) { p.Namespace = up(1) }},
		"container":  {want: "Failed: spec.containers[0].name", change: func(p *v1.Pod) { p.Spec.Containers[0].Name = up(5) }},
		"same-container": {want: "Failed: spec.containers[1].name", change: func(p *v1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
		}},
		"ephemeral": {want: "Failed: spec.ephemeralContainers[0].name", change: func(p *v1.Pod) {
			p.Spec.EphemeralContainers = make([]v1.EphemeralContainer, 1)
			p.Spec.EphemeralContainers[0].Name = up(2)
		}},
		"volume": {want: "Failed: spec.volumes[0].name", change: func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{Name: up(5)}}
		}},
		"same-volume": {want: "Failed: spec.volumes[1].name", change: func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{Name: "v"}, {Name: "v"}}
		}},
		"static-annotation": {want: "Running", yaml: "metadata: {annotations: {kubernetes.io/config.source: file}}"},
		"mirror":            {want: "Gone", yaml: "metadata: {annotations: {kubernetes.io/config.mirror: x}}"},
	}
}

// inContainer returns a pod whose container and spec have further fields.
func inContainer(container, spec string) string {
	return "spec: {containers: [{name: c, image: 'i:1', " + container + "}], " + spec + "}"
}

// withVolume returns a pod with a volume that is mounted with further fields.
func withVolume(volume, mount string) string {
	return inContainer("volumeMounts: [{name: v, mountPath: /v, "+mount+"}]", "volumes: [{name: v, "+volume+"}]")
}

// object returns a ConfigMap or Secret of the namespace of the pods by its path.
func object(resource, name string, data map[string]string) map[string]apitest.Object {
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	path := "/api/v1/namespaces/default/" + resource + "/" + name
	if resource == "configmaps" {
		return map[string]apitest.Object{path: &v1.ConfigMap{ObjectMeta: meta, Data: data}}
	}
	values := map[string][]byte{}
	for key, value := range data {
		values[key] = []byte(value)
	}
	return map[string]apitest.Object{path: &v1.Secret{ObjectMeta: meta, Data: values}}
}

// hostileKeys are pods whose ConfigMaps and Secrets have keys that cannot be names of files or variables.
func hostileKeys() map[string]hostilePod {
	all := map[string]hostilePod{
		"env-keys": {
			want: "Running", yaml: inContainer("envFrom: [{secretRef: {name: env-keys}}]", ""),
			objects: object("secrets", "env-keys", map[string]string{up(1): secretValue, "a=\n\x1b[31m": secretValue}),
		},
		"large": {
			want: "Pending: failed to sync configmap cache", yaml: inContainer("envFrom: [{configMapRef: {name: large}}]", ""),
			objects: object("configmaps", "large", map[string]string{"a": strings.Repeat("x", 2<<20)}),
		},
	}
	for key, want := range map[string]string{
		"..": "begins with two dots", "..data": "begins with two dots", "": "is not the path of a file",
		"/" + escaped: "is not the path of a file", up(1): "begins with two dots", up(4): "begins with two dots",
		up(12): "begins with two dots", "a/../../" + escaped: "begins with two dots",
		"a\x00b\n\x1b[31m": `\x00b\n\x1b[31m`, strings.Repeat("k", 300): "which is more than 255",
	} {
		name := fmt.Sprint("key-", len(all))
		all["map-"+name] = hostilePod{
			want: "Pending: " + want, yaml: withVolume("configMap: {name: "+name+"}", ""),
			objects: object("configmaps", name, map[string]string{key: "a"}),
		}
		all["secret-"+name] = hostilePod{
			want: "Pending: " + want, yaml: withVolume("secret: {secretName: "+name+"}", ""),
			objects: object("secrets", name, map[string]string{key: secretValue}),
		}
	}
	return all
}

// hostilePaths are pods with paths and references that lead to other directories or objects.
func hostilePaths() map[string]hostilePod {
	token := "projected: {sources: [{serviceAccountToken: {path: t}}]}"
	all := map[string]hostilePod{
		"other-account": {
			want: "Pending: failed to fetch token", yaml: withVolume(token, ""),
			change: func(p *v1.Pod) { p.Spec.ServiceAccountName = "../../other/serviceaccounts/admin" },
		},
		"pull-secret": {
			want: "Running: FailedToRetrieveImagePullSecret",
			yaml: "spec: {imagePullSecrets: [{name: " + up(2) + "}, {name: broken}]}",
			objects: object("secrets", "broken", map[string]string{
				".dockerconfigjson": `{"auths": ` + secretValue,
			}),
		},
		"subpath":     {want: "Pending: must not contain", yaml: withVolume("emptyDir: {}", "subPath: "+up(6))},
		"termination": {want: "Running", yaml: inContainer("terminationMessagePath: "+up(8), "")},
		"class":       {want: "Pending: not found", yaml: "spec: {runtimeClassName: " + up(2) + "}"},
		"handler":     {want: "Pending: FailedCreatePodSandBox", yaml: "spec: {runtimeClassName: handler}"},
		"seccomp": {
			want: "Pending: cannot load seccomp profile",
			yaml: inContainer("", "securityContext: {seccompProfile: {type: Localhost, localhostProfile: "+up(8)+"}}"),
		},
		"subpath-expr": {
			want: "Pending: must not contain", yaml: inContainer("env: [{name: A, value: "+up(6)+"}], "+
				"volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(A)/x}]", "volumes: [{name: v, emptyDir: {}}]"),
		},
		"items": {want: "Running", objects: object("configmaps", "item", map[string]string{"a": "b"})},
	}
	for _, c := range [][2]string{
		{"begins with two dots", "configMap: {name: item, items: [{key: a, path: " + up(6) + "}]}"},
		{"is not the path of a file", "configMap: {name: item, items: [{key: a, path: /" + escaped + "}]}"},
		{"begins with two dots", "downwardAPI: {items: [{path: " + up(6) + ", fieldRef: {fieldPath: metadata.name}}]}"},
		{"begins with two dots", "projected: {sources: [{serviceAccountToken: {path: " + up(6) + "}}]}"},
		{"not a directory", "projected: {sources: [{configMap: {name: item}}, " +
			"{secret: {name: login, items: [{key: password, path: a/b}]}}]}"},
		{"not found", "configMap: {name: " + up(2) + "}"},
		{"not found", "configMap: {name: ../../other/configmaps/private}"},
		{"not found", "secret: {secretName: other/private}"},
		{"the pod has no such token", "secret: {secretName: 'token:" + goodUID + ":x'}"},
		{"failed to fetch PVC", "persistentVolumeClaim: {claimName: " + up(4) + "}"},
		{"must not contain", "hostPath: {path: /tmp/../" + escaped + ", type: DirectoryOrCreate}"},
		{"must be an absolute path", "hostPath: {path: " + escaped + ", type: DirectoryOrCreate}"},
		{"is not a directory", `hostPath: {path: "/tmp/a\0b", type: DirectoryOrCreate}`},
		{"unknown storage medium", "emptyDir: {medium: Odd, sizeLimit: '-1'}"},
	} {
		all[fmt.Sprint("volume-", len(all))] = hostilePod{want: "Pending: " + c[0], yaml: withVolume(c[1], "")}
	}
	return all
}

// hostileNumbers are pods with counts and numbers that no API server accepts.
func hostileNumbers() map[string]hostilePod {
	first := func(p *v1.Pod) *v1.Container { return &p.Spec.Containers[0] }
	return map[string]hostilePod{
		"no-containers": {want: "Failed: spec.containers", change: func(p *v1.Pod) { p.Spec.Containers = nil }},
		"init": {want: "Pending: PodInitializing", change: func(p *v1.Pod) {
			for i := range 300 {
				p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: fmt.Sprint("i", i), Image: "i:1"})
			}
		}},
		"mounts": {want: "Running", change: func(p *v1.Pod) {
			for i := range 100 {
				name := fmt.Sprint("v", i)
				source := v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
				p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
				first(p).VolumeMounts = append(first(p).VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
			}
		}},
		"env":      {want: "Running", change: func(p *v1.Pod) { first(p).Env = make([]v1.EnvVar, 20_000) }},
		"env-many": {want: "Failed: entries in lists", change: func(p *v1.Pod) { first(p).Env = make([]v1.EnvVar, 100_000) }},
		"env-grows": {want: "Pending: is too long once $(NAME) is expanded", change: func(p *v1.Pod) {
			text := "0123456789"
			for i := range 30 {
				first(p).Env = append(first(p).Env, v1.EnvVar{Name: fmt.Sprint("A", i), Value: text})
				text = strings.Repeat(fmt.Sprintf("$(A%d)", i), 10)
			}
		}},
		"references": {want: "Pending: which is more than 500", change: func(p *v1.Pod) {
			for i := range 501 {
				ref := &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: fmt.Sprint("m", i)}}
				first(p).EnvFrom = append(first(p).EnvFrom, v1.EnvFromSource{ConfigMapRef: ref})
			}
		}},
		"large-pod": {want: "Failed: it is larger than", change: func(p *v1.Pod) {
			p.Annotations = map[string]string{"a": strings.Repeat("x", 11<<20)}
		}},
		"negative": {want: "Running", change: func(p *v1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = new(int64(math.MinInt64))
			p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(-1)), RunAsUser: new(int64(-1))}
		}},
		"deadline": {want: "Failed: DeadlineExceeded", change: func(p *v1.Pod) {
			p.Spec.ActiveDeadlineSeconds = new(int64(math.MinInt64))
		}},
		"probe": {want: "Running: Liveness probe errored", change: func(p *v1.Pod) {
			first(p).LivenessProbe = &v1.Probe{
				ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{
					Path: "/\r\nX: y", Port: intstr.FromInt32(-1), Host: "a\r\nb", Scheme: "ODD",
					HTTPHeaders: []v1.HTTPHeader{{Name: "a\r\nb", Value: "c\r\nd"}},
				}},
				PeriodSeconds: math.MinInt32, TimeoutSeconds: math.MinInt32, FailureThreshold: math.MinInt32,
			}
		}},
		"ports": {want: "Running", change: func(p *v1.Pod) {
			first(p).Ports = []v1.ContainerPort{{ContainerPort: 70000, HostPort: -1, Protocol: "ODD", HostIP: "a\nb"}}
		}},
		"hosts": {want: "Pending: is not a valid DNS label", change: func(p *v1.Pod) {
			p.Spec.Hostname, p.Spec.Subdomain = "a\n192.0.2.1 evil", "b/../c"
		}},
		"aliases": {want: "Running", change: func(p *v1.Pod) {
			p.Spec.HostAliases = []v1.HostAlias{{IP: "192.0.2.1\n192.0.2.2", Hostnames: []string{"a\nb"}}}
			p.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"192.0.2.1\noptions x"}, Searches: []string{"a\nb"}}
		}},
		"control": {want: "Pending: InvalidImageName", change: func(p *v1.Pod) {
			first(p).Image, first(p).Command = "i:1\x1b[31m\n", []string{"a\x00b"}
			p.Labels = map[string]string{"a\nb": "c\x1b[31m"}
		}},
	}
}

// hostileServices are Services and RuntimeClasses, which concern all pods.
func hostileServices() map[string]apitest.Object {
	all := map[string]apitest.Object{}
	add := func(name, ip string, port v1.ServicePort) {
		all["/api/v1/namespaces/default/services/"+name] = &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{port}},
		}
	}
	for i, name := range []string{up(3), "a\nLD_PRELOAD", "", "=", "lines"} {
		add(name, fmt.Sprintf("10.0.0.%d\nX=y", i), v1.ServicePort{Name: "a\nb", Port: math.MinInt32, Protocol: "ODD"})
	}
	for i := range 200 {
		add(fmt.Sprint("s", i), "10.0.1.1", v1.ServicePort{Port: 80})
	}
	for name, handler := range map[string]string{up(2): "x", "handler": up(2), "lines": "a\nb"} {
		all["/apis/node.k8s.io/v1/runtimeclasses/"+name] = &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler,
		}
	}
	return all
}

// pod returns the pod of a row.
func (h hostilePod) pod(t *testing.T, name string) *v1.Pod {
	t.Helper()
	pod := plainPod(t, name)
	if err := yaml.Unmarshal([]byte(h.yaml), pod); err != nil {
		t.Fatalf("%s: %v in %s", name, err, h.yaml)
	}
	pod.UID = types.UID("hostile-" + name)
	if h.change != nil {
		h.change(pod)
	}
	return pod
}
