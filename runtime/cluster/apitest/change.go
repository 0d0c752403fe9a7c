package apitest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// handle makes a change. The caller holds the lock.
func (c *Cluster) handle(r *http.Request, resource string, body []byte) (answer object, refusal http.HandlerFunc) {
	path := strings.TrimSuffix(r.URL.Path, "/status")
	path, evicts := strings.CutSuffix(path, "/eviction")
	before := c.objects[path]
	if pod, is := before.(*v1.Pod); is && evicts && pod.Spec.TerminationGracePeriodSeconds != nil {
		return c.end(path, pod, *pod.Spec.TerminationGracePeriodSeconds), nil
	}
	if r.Method == http.MethodPost {
		o := newObject(resource)
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, o); err != nil {
			return nil, Refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, 0)
		}
		if o.GetGenerateName() != "" {
			o.SetName(o.GetGenerateName() + strconv.Itoa(c.version))
		}
		path += "/" + o.GetName()
		if c.objects[path] != nil {
			return nil, Refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists, 0)
		}
		if csr, is := o.(*certificatesv1.CertificateSigningRequest); is && c.Sign != nil {
			c.Sign(csr)
		}
		c.store(path, o)
		return o, nil
	}
	if before == nil {
		return nil, Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, 0)
	}
	switch r.Method {
	case http.MethodDelete:
		return c.remove(path, before, body)
	case http.MethodPut:
		o := newObject(resource)
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, o); err != nil {
			return nil, Refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, 0)
		}
		c.store(path, o)
		return o, nil
	}
	return c.patch(path, before, body)
}

func (c *Cluster) patch(path string, before object, body []byte) (answer object, refusal http.HandlerFunc) {
	var sent metav1.PartialObjectMetadata
	text, err := json.Marshal(before)
	if err == nil {
		err = json.Unmarshal(body, &sent)
	}
	after := newObject(collectionOf(path))
	var merged []byte
	if err == nil {
		merged, err = strategicpatch.StrategicMergePatch(text, body, after)
	}
	if err == nil {
		err = json.Unmarshal(merged, after)
	}
	switch {
	case err != nil:
		return nil, Refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, 0)
	case sent.UID != "" && sent.UID != before.GetUID():
		return nil, Refusal(http.StatusConflict, metav1.StatusReasonConflict, 0)
	}
	c.store(path, after)
	if pod, is := after.(*v1.Pod); is && c.stored != nil {
		c.stored(before.(*v1.Pod), pod) // of the same resource
	}
	return after, nil
}

func (c *Cluster) remove(path string, before object, body []byte) (answer object, refusal http.HandlerFunc) {
	options := &metav1.DeleteOptions{}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, options)
	switch {
	case err != nil || options.Preconditions == nil || options.Preconditions.UID == nil:
		return nil, Refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, 0)
	case *options.Preconditions.UID != before.GetUID():
		return nil, Refusal(http.StatusConflict, metav1.StatusReasonConflict, 0)
	}
	grace := options.GracePeriodSeconds
	if pod, is := before.(*v1.Pod); is && (grace == nil || *grace > 0) {
		if grace = cmp.Or(grace, pod.Spec.TerminationGracePeriodSeconds); grace != nil {
			return c.end(path, pod, *grace), nil
		}
	}
	c.drop(path, before)
	return before, nil
}
