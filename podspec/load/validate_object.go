package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	claimapi "k8s.io/kubernetes/pkg/api/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/podctl/podctl/podspec/document"
)

// validateObject applies the API server's own rules for creating a ConfigMap, Secret or claim.
// Those of podctl's own are for what a claim cannot be here.
func validateObject(o *object) {
	r, before := o.report, len(o.report.kept)
	errs, err := o.createErrors()
	if err != nil {
		r.refuse(document.ClassInvalid, "", err.Error())
	}
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	for _, err := range errs {
		if !isNameCompleted(o.meta, err) && !r.follows(err) {
			r.refuse(document.ClassInvalid, o.place(err), o.detail(err))
		}
	}
	checkGeneratedName(r, o.meta)
	if o.claim != nil {
		checkClaim(r, o.claim)
	}
	if o.volume != nil {
		checkVolume(r, o.volume)
	}
	if o.secret != nil {
		mergeStringData(o.secret)
	}
	// A note would repeat the name.
	o.damaged = o.damaged || len(r.kept) > before
}

// createErrors is what the API server finds wrong with a new object (the strategies of
// registry/core).
func (o *object) createErrors() (field.ErrorList, error) {
	switch {
	case o.configMap != nil:
		return configMapErrors(o.configMap.DeepCopy())
	case o.secret != nil:
		return secretErrors(o.secret.DeepCopy())
	case o.volume != nil:
		return volumeErrors(o.volume.DeepCopy())
	}
	return claimErrors(o.claim.DeepCopy())
}

func configMapErrors(cm *v1.ConfigMap) (field.ErrorList, error) {
	cm.Name = completed(&cm.ObjectMeta)
	corev1.SetObjectDefaults_ConfigMap(cm)
	internal := &core.ConfigMap{}
	err := corev1.Convert_v1_ConfigMap_To_core_ConfigMap(cm, internal, nil)
	return validation.ValidateConfigMap(internal), err
}

func secretErrors(s *v1.Secret) (field.ErrorList, error) {
	s.Name = completed(&s.ObjectMeta)
	corev1.SetObjectDefaults_Secret(s)
	internal := &core.Secret{}
	err := corev1.Convert_v1_Secret_To_core_Secret(s, internal, nil)
	return validation.ValidateSecret(internal), err
}

func volumeErrors(volume *v1.PersistentVolume) (field.ErrorList, error) {
	volume.Name = completed(&volume.ObjectMeta)
	corev1.SetObjectDefaults_PersistentVolume(volume)
	internal := &core.PersistentVolume{}
	if err := corev1.Convert_v1_PersistentVolume_To_core_PersistentVolume(volume, internal, nil); err != nil {
		return nil, err
	}
	return validation.ValidatePersistentVolume(internal, validation.PersistentVolumeSpecValidationOptions{}), nil
}

func claimErrors(claim *v1.PersistentVolumeClaim) (field.ErrorList, error) {
	claim.Name = completed(&claim.ObjectMeta)
	corev1.SetObjectDefaults_PersistentVolumeClaim(claim)
	internal := &core.PersistentVolumeClaim{}
	if err := corev1.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim(claim, internal, nil); err != nil {
		return nil, err
	}
	// What the server does next, to write one source of data into two fields, would only repeat
	// what is wrong with it.
	claimapi.DropDisabledFields(&internal.Spec, nil)
	claimapi.EnforceDataSourceBackwardsCompatibility(&internal.Spec, nil)
	return validation.ValidatePersistentVolumeClaim(internal, validation.ValidationOptionsForPersistentVolumeClaimCreate()), nil
}

// place is where the document has what an error is about: the API server's rules name data for
// what stringData gives, and leave out a level of a claim's resources.
func (o *object) place(err *field.Error) string {
	if key, ok := dataKey(err); ok && o.secret != nil {
		if _, text := o.secret.StringData[key]; text {
			return "string" + strings.ToUpper(err.Field[:1]) + err.Field[1:]
		}
	}
	if o.configMap != nil && err.Type == field.ErrorTypeTooLong && err.Field == "[]" {
		return "data"
	}
	if rest, ok := strings.CutPrefix(err.Field, "spec.resources["); ok && o.claim != nil {
		return "spec.resources.requests[" + rest
	}
	return err.Field
}

// dataKey is the key of the entry that an error is about.
func dataKey(err *field.Error) (key string, ok bool) {
	_, key, ok = strings.Cut(strings.TrimSuffix(err.Field, "]"), "[")
	return key, ok && (strings.HasPrefix(err.Field, "data[") || strings.HasPrefix(err.Field, "binaryData["))
}

// detail says what is wrong with a field of an object. The JSON library's words would repeat a
// letter of a Secret.
func (o *object) detail(err *field.Error) string {
	key, isKey := dataKey(err)
	switch {
	case isKey && strings.HasPrefix(err.Detail, "duplicate of key"):
		return "is in binaryData, too"
	case isKey && err.Type == field.ErrorTypeInvalid && err.BadValue == any(key):
		return "is not a valid key: " + err.Detail
	case o.secret != nil && isKey && err.Type == field.ErrorTypeInvalid:
		return "is not valid JSON, which a Secret of type " + string(o.secret.Type) + " holds"
	case o.secret != nil && isKey && o.secret.Type == v1.SecretTypeBasicAuth:
		return fmt.Sprintf("the key %s or %s is required in a Secret of type %s", v1.BasicAuthUsernameKey, v1.BasicAuthPasswordKey, o.secret.Type)
	case o.secret != nil && isKey && err.Type == field.ErrorTypeRequired:
		return fmt.Sprintf("the key %s is required in a Secret of type %s", key, o.secret.Type)
	case o.secret != nil && err.Type == field.ErrorTypeRequired && o.secret.Type == v1.SecretTypeServiceAccountToken:
		return fmt.Sprintf("%s is required in a Secret of type %s", v1.ServiceAccountNameKey, o.secret.Type)
	}
	return o.report.fieldDetail(err)
}

// checkClaim refuses what a directory cannot be.
func checkClaim(r *report, claim *v1.PersistentVolumeClaim) {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == v1.PersistentVolumeBlock {
		r.refuse(document.ClassUnsupported, "spec.volumeMode", "a claim is a directory here, and no block device")
	}
}

// mergeStringData puts a secret's stringData into its data, where it wins, as
// the API server does.
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
