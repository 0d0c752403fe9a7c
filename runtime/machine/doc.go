// Package machine reads what podctl has to know of the machine that it runs on: what the
// configuration of pods depends on, what the kernel can do, which ports are taken, and
// whether a kubelet runs. It changes nothing.
package machine
