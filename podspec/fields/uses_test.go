package fields

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInCluster checks which fields of a pod of the API server reject it, and which have no effect.
func TestInCluster(t *testing.T) {
	vol := func(source v1.VolumeSource) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: source}} }
	}
	projected := func(sources ...v1.VolumeProjection) func(*v1.Pod) {
		return vol(v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}})
	}
	large := resource.MustParse("1Gi")
	windows := &v1.WindowsSecurityContextOptions{RunAsUserName: new("u")}
	for name, c := range map[string]struct {
		set                  func(*v1.Pod)
		refused, ineffective string
	}{
		"a pod as the API server sends it": {set: ofServer},
		"ResourceClaims": {set: func(p *v1.Pod) {
			p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("g")}, {Name: "b"}}
			p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
		}, refused: "spec.containers[0].resources.claims spec.resourceClaims"},
		"a block device": {
			set:     func(p *v1.Pod) { p.Spec.Containers[1].VolumeDevices = []v1.VolumeDevice{{Name: "d", DevicePath: "/d"}} },
			refused: "spec.containers[1].volumeDevices",
		},
		"nfs": {
			set:     vol(v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: "s", Path: "/"}}),
			refused: "spec.volumes[0].nfs",
		},
		"an empty source": {
			set:     vol(v1.VolumeSource{CSI: &v1.CSIVolumeSource{}}),
			refused: "spec.volumes[0].csi",
		},
		"a generic ephemeral volume": {
			set: vol(v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}}),
		},
		"a claim": {
			set: vol(v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}),
		},
		"a kind of volume of a newer version": {set: vol(v1.VolumeSource{}), refused: "spec.volumes[0]"},
		"a token": {
			set: projected(
				v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{}},
				v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
			),
		},
		"trust anchors": {
			set: projected(v1.VolumeProjection{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Name: new("ca"), Path: "ca"}}),
		},
		"a certificate of the pod": {
			set:     projected(v1.VolumeProjection{PodCertificate: &v1.PodCertificateProjection{SignerName: "a.io/b", KeyType: "ED25519"}}),
			refused: "spec.volumes[0].projected.sources[0].podCertificate",
		},
		"a projected source of a newer version": {
			set:     projected(v1.VolumeProjection{}),
			refused: "spec.volumes[0].projected.sources[0]",
		},
		"an emptyDir": {set: vol(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})},
		"a limit in memory": {
			set: vol(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: "Memory", SizeLimit: &large}}),
		},
		"a limit on disk": {set: vol(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &large}})},
		"Windows": {set: func(p *v1.Pod) {
			p.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: windows}
			p.Spec.InitContainers = []v1.Container{{SecurityContext: &v1.SecurityContext{WindowsOptions: windows}}}
		}, ineffective: "spec.initContainers[0].securityContext.windowsOptions spec.securityContext.windowsOptions"},
		"a limit of the disk": {
			set: func(p *v1.Pod) {
				p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: large, "cpu": large}
			},
		},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}, {Name: "b"}}}}
		c.set(pod)
		refused, ineffective := InCluster(pod)
		if diff := cmp.Diff([]string{c.refused, c.ineffective}, []string{paths(t, refused), paths(t, ineffective)}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func paths(t *testing.T, uses []Use) string {
	t.Helper()
	var list []string
	for _, use := range uses {
		if list = append(list, use.Path); !strings.HasSuffix(use.Note, ".") {
			t.Errorf("%s: note %q", use.Path, use.Note)
		}
	}
	return strings.Join(list, " ")
}

// ofServer sets what an API server sets in every pod, and what its other components use.
func ofServer(p *v1.Pod) {
	p.ObjectMeta = metav1.ObjectMeta{
		GenerateName: "web-", Name: "web-1", UID: "u", Generation: 1, ResourceVersion: "1", Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}, CreationTimestamp: metav1.Now(),
		DeletionTimestamp: &metav1.Time{}, DeletionGracePeriodSeconds: new(int64(1)),
	}
	p.Spec.NodeName, p.Spec.SchedulerName, p.Spec.ServiceAccountName = "here", "default-scheduler", "default"
	p.Spec.DeprecatedServiceAccount, p.Spec.AutomountServiceAccountToken = "default", new(true)
	p.Spec.NodeSelector, p.Spec.PreemptionPolicy = map[string]string{"a": "b"}, new(v1.PreemptLowerPriority)
	p.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoExecute}}
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}}
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	p.Spec.DNSPolicy, p.Spec.EnableServiceLinks, p.Spec.SecurityContext = v1.DNSClusterFirst, new(true), &v1.PodSecurityContext{}
}

// TestColumnInACluster checks that the table has a support and a note for pods of the API server only where they
// differ.
func TestColumnInACluster(t *testing.T) {
	for _, f := range All() {
		switch {
		case f.Cluster == "" && f.ClusterNote != "", f.Cluster != "" && !strings.HasSuffix(f.ClusterNote, "."):
			t.Errorf("%s: %q with the note %q", f.Path, f.Cluster, f.ClusterNote)
		case f.Cluster == f.Support && f.ClusterNote == f.Note && f.Cluster != "":
			t.Errorf("%s: the same twice", f.Path)
		case f.Cluster == "" && strings.Contains(f.Note, "API server"), f.Cluster == "" && strings.Contains(f.Note, "has one machine"):
			t.Errorf("%s: %s", f.Path, f.Note)
		}
		if !slices.Contains([]Support{"", Honoured, NoEffect, Refused}, f.Cluster) {
			t.Error(fmt.Sprint(f.Cluster))
		}
	}
}
