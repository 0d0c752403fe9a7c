// Package kubeletconf compares the settings of a kubelet with those of podctl.
//
// The input is the text of a kubelet's files: a KubeletConfiguration with its drop-ins, units of systemd, files of
// variables or flags, the configuration of k3s, and command lines. The result is a Report with one finding for each
// setting: podctl has a setting of its own for it, does the same anyway, does not have it, or cannot be used with it.
// In the other direction, Export converts the settings of an agent into those of a kubelet.
//
// One table has all fields of KubeletConfiguration, and all flags of a kubelet. The package opens no files.
package kubeletconf
