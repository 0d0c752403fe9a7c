package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
)

// showDevices prints the resources of device plugins, and the containers that have their devices.
func showDevices(io *terminal.IO, s *api.Status) error {
	if len(s.Devices) == 0 {
		return nil
	}
	rows := make([][]string, 0, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		plugin := "registered"
		if !d.Connected {
			plugin = "gone: " + cmp.Or(oneLine([]string{d.Error}), "not registered since the agent started")
		}
		rows = append(rows, []string{
			d.Name, fmt.Sprintf("%d/%d", d.Healthy, d.Healthy+d.Unhealthy), plugin, deviceUses(s, d.Uses),
		})
	}
	io.Print("")
	return table.Write(io.Out, []string{"DEVICES", "HEALTHY", "PLUGIN", "USED BY"}, rows)
}

// deviceUses lists the containers that have devices: pod/container=device,device.
func deviceUses(s *api.Status, uses []model.DeviceUse) string {
	var texts []string
	for _, u := range uses {
		pod := string(u.Pod)
		if i := slices.IndexFunc(s.Pods, func(p api.Pod) bool { return p.UID == u.Pod }); i >= 0 {
			pod = s.Pods[i].Namespace + "/" + s.Pods[i].Name
		}
		texts = append(texts, fmt.Sprintf("%s/%s=%s", pod, u.Container, strings.Join(u.IDs, ",")))
	}
	return cmp.Or(strings.Join(texts, " "), "-")
}
