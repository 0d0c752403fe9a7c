package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Details is what a cgroup uses and may use, in the terms of cAdvisor (info.ContainerStats). A nil field is not known.
// Times are in nanoseconds, sizes in bytes.
type Details struct {
	Usage

	// User and System are processor times since the cgroup was created.
	User, System *uint64
	// Shares is the weight of the processor in the terms of version 1. Period and Quota are in microseconds; Quota is
	// nil without a limit. The counts of periods exist only with a limit.
	Shares, Period, Quota                        *uint64
	Periods, ThrottledPeriods, ThrottledTime     *uint64
	BurstPeriods, BurstTime                      *uint64
	Cache, MappedFile, ActiveFile, InactiveFile  *uint64
	KernelMemory, MaxMemory, MemoryFailures, OOM *uint64
	// Reservation is memory that is protected; nil without.
	Reservation *uint64
	// Threads is the number of threads, and ThreadsMax its limit; nil without one. Members is the number of processes
	// in the cgroup itself.
	Threads, ThreadsMax, Members *uint64
	// Disks are the transfers of block devices.
	Disks []DiskIO
}

// DiskIO counts the transfers of a block device, which has a number such as 254:0.
type DiskIO struct {
	Device                                 string
	ReadBytes, WrittenBytes, Reads, Writes uint64
}

// Details returns the details of a cgroup. A cgroup that is gone has no values.
func (Machine) Details(name string) (Details, error) {
	t, err := findTree()
	if err != nil {
		return Details{}, err
	}
	return detailsIn(t, name), nil
}

func detailsIn(t *tree, name string) Details {
	d, read := Details{Usage: usageIn(t, name)}, reader(t, name)
	if t.unified {
		read("memory", d.readUnifiedDetails)
		return d
	}
	read("cpuacct", func(dir string) {
		counts := countsIn(dir, "cpuacct.stat")
		d.User, d.System = scaled(known(counts, "user"), tick), scaled(known(counts, "system"), tick)
	})
	read("cpu", d.readCPU)
	read("memory", d.readMemoryDetails)
	read("pids", func(dir string) { d.Threads, d.ThreadsMax = d.Processes, limitAt(dir, "pids.max") })
	read("blkio", func(dir string) {
		d.Disks = transfersOf(contentsOf(dir, "blkio.throttle.io_service_bytes_recursive"),
			contentsOf(dir, "blkio.throttle.io_serviced_recursive"))
	})
	return d
}

// tick is the unit of processor times in version 1, in nanoseconds (USER_HZ).
const tick = 10_000_000

// readCPU reads the files of version 1.
func (d *Details) readCPU(dir string) {
	d.Shares, d.Period = countAt(dir, "cpu.shares"), countAt(dir, "cpu.cfs_period_us")
	if d.Quota = countAt(dir, "cpu.cfs_quota_us"); d.Quota != nil {
		d.addPeriods(countsIn(dir, "cpu.stat"), "throttled_time", "burst_time", 1)
	}
}

// addPeriods adds the counts of a limit. Times have a unit in nanoseconds.
func (d *Details) addPeriods(counts map[string]int64, throttled, burst string, unit uint64) {
	d.Periods, d.ThrottledPeriods = known(counts, "nr_periods"), known(counts, "nr_throttled")
	d.BurstPeriods = known(counts, "nr_bursts")
	d.ThrottledTime, d.BurstTime = scaled(known(counts, throttled), unit), scaled(known(counts, burst), unit)
}

// readMemoryDetails reads the files of version 1.
func (d *Details) readMemoryDetails(dir string) {
	counts := countsIn(dir, "memory.stat")
	d.Cache, d.MappedFile = known(counts, "total_cache"), known(counts, "total_mapped_file")
	d.ActiveFile, d.InactiveFile = known(counts, "total_active_file"), known(counts, "total_inactive_file")
	d.KernelMemory, d.MaxMemory = countAt(dir, "memory.kmem.usage_in_bytes"), countAt(dir, "memory.max_usage_in_bytes")
	d.MemoryFailures, d.OOM = countAt(dir, "memory.failcnt"), known(countsIn(dir, "memory.oom_control"), "oom_kill")
	d.Reservation = limitAt(dir, "memory.soft_limit_in_bytes")
	d.Members = membersOf(dir)
}

// readUnifiedDetails reads the files of version 2.
func (d *Details) readUnifiedDetails(dir string) {
	counts := countsIn(dir, "cpu.stat")
	const microsecond = 1000
	d.User = scaled(known(counts, "user_usec"), microsecond)
	d.System = scaled(known(counts, "system_usec"), microsecond)
	if weight := countAt(dir, "cpu.weight"); weight != nil && *weight > 0 {
		d.Shares = new(2 + (*weight-1)*262142/9999)
	}
	if quota, period, found := strings.Cut(strings.TrimSpace(contentsOf(dir, "cpu.max")), " "); found {
		d.Quota, d.Period = countOf(quota), countOf(period)
	}
	if d.Quota != nil {
		d.addPeriods(counts, "throttled_usec", "burst_usec", microsecond)
	}
	memory := countsIn(dir, "memory.stat")
	d.Cache, d.MappedFile = known(memory, "file"), known(memory, "file_mapped")
	d.ActiveFile, d.InactiveFile = known(memory, "active_file"), known(memory, "inactive_file")
	d.KernelMemory, d.MaxMemory = known(memory, "kernel"), countAt(dir, "memory.peak")
	events := countsIn(dir, "memory.events")
	d.MemoryFailures, d.OOM = known(events, "max"), known(events, "oom_kill")
	if low := countAt(dir, "memory.low"); low != nil && *low > 0 {
		d.Reservation = low
	}
	d.Threads, d.ThreadsMax, d.Members = d.Processes, limitAt(dir, "pids.max"), membersOf(dir)
	d.Disks = unifiedTransfersOf(contentsOf(dir, "io.stat"))
}

// transfersOf parses the two files of version 1, with lines such as "254:0 Read 4096".
func transfersOf(bytes, counts string) (all []DiskIO) {
	at := map[string]int{}
	for _, part := range []struct {
		text string
		add  func(*DiskIO, string, uint64)
	}{
		{bytes, func(d *DiskIO, kind string, n uint64) { d.set(kind, n, &d.ReadBytes, &d.WrittenBytes) }},
		{counts, func(d *DiskIO, kind string, n uint64) { d.set(kind, n, &d.Reads, &d.Writes) }},
	} {
		for line := range strings.Lines(part.text) {
			words := strings.Fields(line)
			if len(words) != 3 {
				continue
			}
			n, err := strconv.ParseUint(words[2], 10, 64)
			if err != nil {
				continue
			}
			i, found := at[words[0]]
			if !found {
				i = len(all)
				at[words[0]], all = i, append(all, DiskIO{Device: words[0]})
			}
			part.add(&all[i], words[1], n)
		}
	}
	return all
}

// set stores a count of reads or writes.
func (*DiskIO) set(kind string, n uint64, reads, writes *uint64) {
	switch kind {
	case "Read":
		*reads = n
	case "Write":
		*writes = n
	}
}

// unifiedTransfersOf parses the file of version 2, with lines such as "254:0 rbytes=4096 wbytes=0 rios=1 wios=0".
func unifiedTransfersOf(text string) (all []DiskIO) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		one := DiskIO{Device: words[0]}
		for _, word := range words[1:] {
			name, number, _ := strings.Cut(word, "=")
			n, err := strconv.ParseUint(number, 10, 64)
			if into := map[string]*uint64{
				"rbytes": &one.ReadBytes, "wbytes": &one.WrittenBytes, "rios": &one.Reads, "wios": &one.Writes,
			}[name]; into != nil && err == nil {
				*into = n
			}
		}
		all = append(all, one)
	}
	return all
}

// membersOf counts the processes of a cgroup itself; nil if they cannot be read.
func membersOf(dir string) *uint64 {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	return new(uint64(strings.Count(string(text), "\n")))
}

// countsIn parses a file with lines of a name and a number.
func countsIn(dir, file string) map[string]int64 { return countsOf(contentsOf(dir, file)) }

// contentsOf returns the contents of a file; empty if it cannot be read.
func contentsOf(dir, file string) string {
	text, _ := os.ReadFile(filepath.Join(dir, file)) // Unknown values are left out.
	return string(text)
}

// countOf parses a number; nil if it is none.
func countOf(text string) *uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// scaled multiplies a count by a unit.
func scaled(n *uint64, unit uint64) *uint64 {
	if n == nil {
		return nil
	}
	return new(*n * unit)
}
