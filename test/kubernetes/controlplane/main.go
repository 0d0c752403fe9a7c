// Command controlplane contains etcd and the programs of Kubernetes that a cluster needs beside its nodes, because they
// share most of their packages:
//
//	controlplane etcd DIRECTORY
//	controlplane kube-apiserver FLAG...
//	controlplane kube-controller-manager FLAG...
//	controlplane kube-scheduler FLAG...
//	controlplane kube-proxy FLAG...
//
// It is only for tests. etcd listens on 127.0.0.1:2379, and does not protect its files against a loss of power.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: controlplane PROGRAM FLAG...")
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	kubernetes := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-proxy":              proxy.NewProxyCommand,
	}
	switch command, known := kubernetes[os.Args[0]]; {
	case known:
		os.Exit(cli.Run(command()))
	case os.Args[0] == "etcd" && len(os.Args) == 2:
		fmt.Fprintln(os.Stderr, "controlplane:", runEtcd(os.Args[1]))
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "controlplane: unknown arguments %q\n", os.Args)
		os.Exit(2)
	}
}

// runEtcd runs etcd until it fails. A signal ends the process.
func runEtcd(dir string) error {
	config := embed.NewConfig()
	config.Dir, config.UnsafeNoFsync, config.LogLevel = dir, true, "warn"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}
