package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/util/validation/field"
	claimapi "k8s.io/kubernetes/pkg/api/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/podctl/podctl/podspec/document"
)

// validateObject applies the API server's rules for creating a ConfigMap, Secret or claim, and podctl's own rules for
// claims.
func validateObject(o *object) {
	r, before := o.report, len(o.report.kept)
	o.refuseErrors(o.createErrors())
	if o.Claim != nil {
		checkClaim(r, o.Claim)
	}
	if o.volume != nil {
		checkVolume(r, o.volume)
	}
	if o.Secret != nil {
		mergeStringData(o.Secret)
	}
	// Otherwise a later note would repeat the name.
	o.damaged = o.damaged || len(r.kept) > before
}

// refuseErrors reports the API server's errors about a new object. It sorts them because some rules iterate over maps.
func (o *object) refuseErrors(errs field.ErrorList, err error) {
	if err != nil {
		o.report.refuse(document.ClassInvalid, "", err.Error())
	}
	if o.pod == nil && o.workload == nil {
		slices.SortFunc(errs, func(a, b *field.Error) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
		})
	}
	for _, err := range errs {
		if !isNameCompleted(o.meta, err) && !o.report.follows(err) {
			o.report.refuse(document.ClassInvalid, o.place(err), o.detail(err))
		}
	}
	checkGeneratedName(o.report, o.meta)
}

// createErrors returns the API server's errors about a new object (the strategies of registry/core, apps and batch). It
// sets the defaults of workloads and Services.
func (o *object) createErrors() (field.ErrorList, error) {
	written := o.meta.Name
	o.meta.Name = completed(o.meta)
	defer func() { o.meta.Name = written }()
	switch {
	case o.ConfigMap != nil:
		return validated(o.ConfigMap.DeepCopy(), corev1.SetObjectDefaults_ConfigMap,
			corev1.Convert_v1_ConfigMap_To_core_ConfigMap, validation.ValidateConfigMap)
	case o.Secret != nil:
		return validated(o.Secret.DeepCopy(), corev1.SetObjectDefaults_Secret,
			corev1.Convert_v1_Secret_To_core_Secret, validation.ValidateSecret)
	case o.Service != nil:
		return validated(o.Service, corev1.SetObjectDefaults_Service, convertService, validation.ValidateServiceCreate)
	case o.volume != nil:
		return validated(o.volume.DeepCopy(), corev1.SetObjectDefaults_PersistentVolume,
			corev1.Convert_v1_PersistentVolume_To_core_PersistentVolume,
			func(v *core.PersistentVolume) field.ErrorList {
				return validation.ValidatePersistentVolume(v, validation.PersistentVolumeSpecValidationOptions{})
			})
	case o.Claim != nil:
		return validated(o.Claim.DeepCopy(), corev1.SetObjectDefaults_PersistentVolumeClaim,
			corev1.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim, claimErrors)
	}
	return workloadErrors(o.workload)
}

// validated sets the defaults of an object and returns the errors of the API server's rules, which apply to the
// internal form.
func validated[V interface{ DeepCopy() V }, I any](
	v V, defaults func(V), convert func(V, *I, conversion.Scope) error, rules func(*I) field.ErrorList,
) (field.ErrorList, error) {
	defaults(v)
	internal := new(I)
	if err := convert(v.DeepCopy(), internal, nil); err != nil {
		return nil, err
	}
	return rules(internal), nil
}

// claimErrors returns the errors of a claim. It does not copy the data source into the second field, as the API server
// does, because each error would then be reported twice.
func claimErrors(claim *core.PersistentVolumeClaim) field.ErrorList {
	claimapi.DropDisabledFields(&claim.Spec, nil)
	claimapi.EnforceDataSourceBackwardsCompatibility(&claim.Spec, nil)
	return validation.ValidatePersistentVolumeClaim(claim, validation.ValidationOptionsForPersistentVolumeClaimCreate())
}

// place returns the path in the document for an error. The API server's rules report values from stringData at data,
// and omit a level of a claim's resources. They report the address of a Service at clusterIPs even if it is in
// clusterIP, and write one field with a capital letter.
func (o *object) place(err *field.Error) string {
	if key, ok := dataKey(err); ok && o.Secret != nil {
		if _, text := o.Secret.StringData[key]; text {
			return "string" + strings.ToUpper(err.Field[:1]) + err.Field[1:]
		}
	}
	if o.ConfigMap != nil && err.Type == field.ErrorTypeTooLong && err.Field == "[]" {
		return "data"
	}
	if rest, ok := strings.CutPrefix(err.Field, "spec.resources["); ok && o.Claim != nil {
		return "spec.resources.requests[" + rest
	}
	if o.Service != nil && err.Field == "spec.clusterIPs[0]" && len(o.Service.Spec.ClusterIPs) == 0 {
		return "spec.clusterIP"
	}
	return strings.Replace(err.Field, "spec.LoadBalancerSourceRanges", "spec.loadBalancerSourceRanges", 1)
}

// dataKey returns the key of the data entry that an error is about.
func dataKey(err *field.Error) (key string, ok bool) {
	_, key, ok = strings.Cut(strings.TrimSuffix(err.Field, "]"), "[")
	return key, ok && (strings.HasPrefix(err.Field, "data[") || strings.HasPrefix(err.Field, "binaryData["))
}

// detail describes the error of an object's field. It replaces the JSON library's messages, which could repeat a letter
// of a Secret.
func (o *object) detail(err *field.Error) string {
	key, isKey := dataKey(err)
	switch {
	case isKey && strings.HasPrefix(err.Detail, "duplicate of key"):
		return "is in binaryData, too"
	case isKey && err.Type == field.ErrorTypeInvalid && err.BadValue == any(key):
		return "is not a valid key: " + err.Detail
	case o.Secret != nil && isKey && err.Type == field.ErrorTypeInvalid:
		return "is not valid JSON, which a Secret of type " + string(o.Secret.Type) + " holds"
	case o.Secret != nil && isKey && o.Secret.Type == v1.SecretTypeBasicAuth:
		return fmt.Sprintf("the key %s or %s is required in a Secret of type %s",
			v1.BasicAuthUsernameKey, v1.BasicAuthPasswordKey, o.Secret.Type)
	case o.Secret != nil && isKey && err.Type == field.ErrorTypeRequired:
		return fmt.Sprintf("the key %s is required in a Secret of type %s", key, o.Secret.Type)
	case o.Secret != nil && err.Type == field.ErrorTypeRequired && o.Secret.Type == v1.SecretTypeServiceAccountToken:
		return fmt.Sprintf("%s is required in a Secret of type %s", v1.ServiceAccountNameKey, o.Secret.Type)
	}
	return o.report.fieldDetail(err)
}

// checkClaim refuses claims that a directory cannot satisfy.
func checkClaim(r *report, claim *v1.PersistentVolumeClaim) {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == v1.PersistentVolumeBlock {
		r.refuse(document.ClassUnsupported, "spec.volumeMode", "a claim is a directory here, not a block device")
	}
}

// mergeStringData merges a Secret's stringData into its data, where it takes precedence, as in the API server.
func mergeStringData(s *v1.Secret) {
	if len(s.StringData) == 0 {
		return
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for _, key := range slices.Sorted(maps.Keys(s.StringData)) {
		s.Data[key] = []byte(s.StringData[key])
	}
	s.StringData = nil
}
