// Package machine reads what podctl has to know of the machine that it runs on: what the
// configuration of pods depends on, what the kernel can do, which ports are taken, and
// whether a kubelet runs.
//
// In comes the root directory to read below; out go values of the rooms that judge them
// (criconfig.Node, doctor.Kernel). It changes nothing and asks no runtime.
package machine
