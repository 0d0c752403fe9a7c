package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	// scrapePods is the number of pods that run while the cost of scrapes is measured.
	scrapePods = 12
	// scrapes is how often each page is scraped, and scrapeEvery the time between two scrapes. Both programs keep the
	// numbers of pods for 10 s.
	scrapes     = 6
	scrapeEvery = 15 * time.Second
)

// costs are the processor times of one program.
type costs struct {
	// pages has the milliseconds of one scrape, without the idle usage, and sizes the bytes, by path.
	pages map[string]float64
	sizes map[string]int
	// idle is the usage in percent of one processor. A kubelet reads the cgroups also while no client scrapes.
	idle float64
}

// costlyPages are the pages whose costs are measured.
func costlyPages() []string {
	return []string{"/metrics", "/metrics/cadvisor", "/metrics/resource", "/stats/summary"}
}

// TestBesideKubeletScrapes measures the cost of scrapes for podctl agent and a kubelet with the same pods. It checks
// only that both answer: the figures are for people.
func TestBesideKubeletScrapes(t *testing.T) {
	found := map[string]*costs{}
	for _, name := range []string{"podctl", "kubelet"} {
		t.Run(name, func(t *testing.T) {
			found[name] = newNode(t).measure(t, name).runScrapes(t)
		})
	}
	p, k := found["podctl"], found["kubelet"]
	if t.Failed() || p == nil || k == nil {
		return
	}
	var b strings.Builder
	for _, path := range costlyPages() {
		fmt.Fprintf(&b, "| one scrape of %s (%d and %d KiB) | %.0f ms | %.0f ms | %.2f |\n", path, p.sizes[path]>>10,
			k.sizes[path]>>10, p.pages[path], k.pages[path], p.pages[path]/k.pages[path])
	}
	fmt.Fprintf(&b, "| processor while nothing happens | %.2f %% | %.2f %% | %.2f |\n", p.idle, k.idle, p.idle/k.idle)
	// Prometheus scrapes all pages, by default once a minute.
	each := func(c *costs) (sum float64) {
		for _, path := range costlyPages() {
			sum += c.pages[path]
		}
		return c.idle + sum/10/time.Minute.Seconds()
	}
	fmt.Fprintf(&b, "| processor with a scrape of all pages each minute | %.2f %% | %.2f %% | %.2f |\n",
		each(p), each(k), each(p)/each(k))
	t.Logf("%d pods\n| measured | podctl | kubelet | ratio |\n|---|---|---|---|\n%s", scrapePods, b.String())
}

func (m *measurement) runScrapes(t *testing.T) *costs {
	t.Helper()
	pid := m.beginWith(t, scrapePods).cmd.Process.Pid
	c := &costs{pages: map[string]float64{}, sizes: map[string]int{}, idle: idleUsage(t, pid)}
	for _, path := range costlyPages() {
		begun, used := time.Now(), processorTime(t, pid)
		for range scrapes {
			c.sizes[path] = len(fetchAll(t, path))
			time.Sleep(scrapeEvery)
		}
		idle := c.idle / 100 * time.Since(begun).Seconds()
		c.pages[path] = max(0, 1000*((processorTime(t, pid)-used).Seconds()-idle)/scrapes)
	}
	return c
}
