package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
)

// deviceCall are the arguments of a call to the manager of devices.
type deviceCall struct {
	Request   *model.DeviceRequest `json:"request,omitempty"`
	Pod       types.UID            `json:"pod,omitempty"`
	Container string               `json:"container,omitempty"`
	Sets      []model.DeviceSet    `json:"sets,omitempty"`
}

// The paths of the calls.
const (
	choosePath   = "/devices/choose"
	allocatePath = "/devices/allocate"
	preparePath  = "/devices/prepare"
)

// serveDevices serves the calls to the manager of devices that passes of other processes make. The arguments are in the
// query, because a request has no body.
func serveDevices(mux *http.ServeMux, b Backend) {
	for path, do := range map[string]func(context.Context, *deviceCall) (any, error){
		choosePath: func(ctx context.Context, c *deviceCall) (any, error) {
			if c.Request == nil {
				return nil, errors.New("there is no request")
			}
			return b.Devices().ChooseDevices(ctx, c.Request)
		},
		allocatePath: func(ctx context.Context, c *deviceCall) (any, error) {
			return struct{}{}, b.Devices().AllocateDevices(ctx, c.Pod, c.Container, c.Sets)
		},
		preparePath: func(ctx context.Context, c *deviceCall) (any, error) {
			return b.Devices().PrepareDevices(ctx, c.Pod, c.Container)
		},
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			var arguments deviceCall
			if err := json.Unmarshal([]byte(r.URL.Query().Get("call")), &arguments); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			document, err := do(r.Context(), &arguments)
			answer(w, document, err)
		})
	}
}

// ChooseDevices returns the devices that the containers of a pod have or can get; see model.DeviceManager.
func (c Client) ChooseDevices(ctx context.Context, request *model.DeviceRequest) (chosen model.Devices, err error) {
	return chosen, c.callDevices(ctx, choosePath, &deviceCall{Request: request}, &chosen)
}

// AllocateDevices allocates devices; see model.DeviceManager.
func (c Client) AllocateDevices(ctx context.Context, pod types.UID, container string, sets []model.DeviceSet) error {
	return c.callDevices(ctx, allocatePath, &deviceCall{Pod: pod, Container: container, Sets: sets}, &struct{}{})
}

// PrepareDevices prepares the devices of a container for its start; see model.DeviceManager.
func (c Client) PrepareDevices(ctx context.Context, pod types.UID, container string) (*model.DeviceConfig, error) {
	var config model.DeviceConfig
	return &config, c.callDevices(ctx, preparePath, &deviceCall{Pod: pod, Container: container}, &config)
}

func (c Client) callDevices(ctx context.Context, path string, arguments *deviceCall, into any) error {
	text, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	err = c.call(ctx, http.MethodPost, path+"?call="+url.QueryEscape(string(text)), into)
	if refused := (*statusError)(nil); errors.As(err, &refused) && refused.code == http.StatusConflict {
		return fmt.Errorf("%w: %w", model.ErrDevicesTaken, err)
	}
	return err
}
