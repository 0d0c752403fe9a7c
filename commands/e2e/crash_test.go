package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// The crash matrix: podctl runs in a separate process, which is killed with SIGKILL before and after each call to the
// runtime, and before each change on disk. After the same command has run again, the state must be the same as without
// the kill.

// crashVar makes the tests try all points. Without it, they try a sample.
const crashVar = "PODCTL_CRASH"

// crash is one command that is killed.
type crash struct {
	runtimetest.Shape
	// args are the arguments of the command. MANIFEST stands for the file of the manifest, SOURCE for the directory of
	// an agent.
	args []string
	// agent is set for a command that does not end by itself, and api for an agent whose pods are those of an API
	// server.
	agent, api bool
}

// crashes returns the commands for all shapes. Each applied shape is also deleted.
func crashes() map[string]crash {
	shapes := runtimetest.Shapes()
	// The final state of a container that crashes by itself depends on time.
	delete(shapes, "crashes")
	if os.Geteuid() == 0 {
		maps.Copy(shapes, mountedShapes())
	}
	two := shapes["two containers"].After
	several := two + "---\n" + strings.Replace(two, "name: web", "name: second", 1)
	shapes["several pods"] = runtimetest.Shape{After: several}
	all := map[string]crash{}
	for name, s := range shapes {
		if s.After == "" {
			all[name] = crash{Shape: s, args: []string{"delete", "-f", "MANIFEST"}}
			continue
		}
		all[name] = crash{Shape: s, args: []string{"apply", "--wait=" + goalOf(s), "--ignore-backoff", "MANIFEST"}}
		if s.Before == "" {
			all["delete after "+name] = crash{
				Shape: runtimetest.Shape{Before: s.After, Behave: s.Behave},
				args:  []string{"delete", "-f", "MANIFEST"},
			}
		}
	}
	all["restart"] = crash{Shape: runtimetest.Shape{Before: two, After: two}, args: []string{"restart", "web"}}
	return all
}

// goalOf returns the goal to wait for: completed if the containers of the pod end, otherwise ready.
func goalOf(s runtimetest.Shape) string {
	if strings.Contains(s.After, "restartPolicy: Never") && len(s.Behave) > 0 {
		return "completed"
	}
	return "ready"
}

const beside = `apiVersion: v1
kind: Pod
metadata: {name: beside}
spec:
  containers: [{name: healthy, image: 'i:1'}]
`

// crashLab is a runtime behind a proxy, with the directories of podctl.
type crashLab struct {
	t     *testing.T
	dir   string
	proxy *runtimetest.Proxy
	crash crash
	// podctl is the program that is killed, env a variable for its environment.
	podctl, env string
	// socket is the runtime's own socket. The others are flags of podctl.
	socket, stateDir, logRoot, cgroupRoot string
	// flags are further flags of podctl.
	flags []string
	// more lists other resources of pods on the machine.
	more func() []string
	// repair follows an instruction in a message of podctl. It reports whether there was one.
	repair func(printed string) bool
	// patience is the interval for checking resources that disappear by themselves. There are up to fifty checks.
	patience time.Duration
	// end removes the lab.
	end func() error
	// beside is the manifest of another pod, and healthy the ID of its container.
	beside, healthy string
	// server is the runtime in memory. It is nil in a lab with a real one.
	server *runtimetest.Server
	// cluster is the API server of an agent that is a node. It is nil for others.
	cluster *apiLab
	// goal is the state at which an agent is stopped. If nil, it is stopped after agentCalm without changes.
	goal []string
}

// newCrashLab returns a lab with a runtime in memory.
func newCrashLab(t *testing.T, c crash) *crashLab {
	t.Helper()
	dir, err := os.MkdirTemp("", "podctl-crash-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	l := &crashLab{t: t, dir: dir, crash: c, podctl: os.Args[0], env: playEnv + "=1", beside: beside}
	l.socket, l.stateDir, l.logRoot = l.path("cri.sock"), l.path("state"), l.path("logs")
	l.cgroupRoot = filepath.Base(dir)
	// The result must not depend on rules and sysctls of this machine, and must not change them.
	l.flags = []string{"--proxy-mode", "none"}
	l.more = func() []string { return nil }
	l.repair = func(string) bool { return false }
	server, err := runtimetest.NewServer(t.Context(), l.socket, runtimetest.WallClock(), "i:1", "i:2")
	if err != nil {
		t.Fatal(err)
	}
	l.server = server
	l.end = func() error {
		server.Close()
		var err error
		for path := range strings.FieldsSeq(l.mounts()) {
			err = errors.Join(err, unix.Unmount(path, unix.MNT_DETACH))
		}
		return errors.Join(err, removeCgroups(l.cgroupRoot), os.RemoveAll(l.dir))
	}
	for name, runs := range c.Behave {
		runs = slices.Clone(runs)
		for i := range runs {
			// This lab uses real time.
			runs[i].After /= 50
		}
		server.Behave(name, runs...)
	}
	l.prepare()
	return l
}

// prepare starts the proxy, and creates the initial state.
func (l *crashLab) prepare() {
	l.t.Helper()
	var err error
	if l.proxy, err = runtimetest.StartProxy(l.t.Context(), l.path("front.sock"), l.socket); err != nil {
		l.t.Fatal(err)
	}
	l.write("beside.yaml", l.beside)
	l.must("apply", l.path("beside.yaml"))
	switch {
	case l.crash.api:
		l.prepareCluster(nil)
	case l.crash.agent:
		l.prepareSource()
	default:
		l.prepareFile()
	}
	l.proxy.Reset()
	// Record the container of the pod beside.
	l.records()
}

// prepareFile lets a command create the initial state, before the command that is killed starts.
func (l *crashLab) prepareFile() {
	l.t.Helper()
	if l.crash.Before != "" {
		l.write("pod.yaml", l.crash.Before)
		l.must("apply", "--wait="+goalOf(l.crash.Shape), "--ignore-backoff", l.path("pod.yaml"))
	}
	if l.crash.After != "" {
		l.write("pod.yaml", l.crash.After)
	}
}

// close removes the lab. It is not a cleanup function of the test, because a test has many labs.
func (l *crashLab) close() {
	l.t.Helper()
	l.cluster.close()
	if err := errors.Join(l.proxy.Close(), l.end()); err != nil {
		l.t.Error(err)
	}
}

func (l *crashLab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *crashLab) write(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(l.path(name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// args returns a command line for this lab.
func (l *crashLab) args(args []string) []string {
	all := append([]string{
		"--state-dir", l.stateDir, "--log-root", l.logRoot, "--cgroup-root", l.cgroupRoot,
		"-r", "unix://" + l.path("front.sock"),
	}, l.flags...)
	if args[0] != "agent" {
		all = append(all, "--timeout", patient(30*time.Second).String())
	}
	for _, arg := range args {
		switch arg {
		case "MANIFEST":
			arg = l.path("pod.yaml")
		case "SOURCE":
			arg = l.source()
		case "KUBECONFIG":
			arg = l.path("kubeconfig")
		case "PORT":
			arg = strconv.Itoa(l.cluster.port)
		}
		all = append(all, arg)
	}
	return all
}

// must runs a command to its end. If its message has an instruction, must follows it and tries again once.
func (l *crashLab) must(args ...string) {
	l.t.Helper()
	code, printed := l.run(args)
	if code != 0 && l.repair(printed) {
		code, printed = l.run(args)
	}
	if code != 0 {
		l.t.Errorf("%v: exit code %d\n%s", args, code, printed)
	}
}

func (l *crashLab) run(args []string) (code int, printed string) {
	var out bytes.Buffer
	env := &commands.Env{
		In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now, Getenv: func(string) string { return "" },
	}
	code = play(l.t.Context(), env, l.args(args))
	return code, out.String()
}

// killedAtCall runs the command in a process that is killed at a call. It reports whether the kill happened.
func (l *crashLab) killedAtCall(arrange func(kill func()) runtimetest.Disturbance) bool {
	l.t.Helper()
	return l.killed(func(kill func()) {
		l.proxy.Disturb(arrange(kill))
	})
}

// killed runs the command in a process. arrange arranges that kill is called, which kills it. killed reports whether
// that happened.
func (l *crashLab) killed(arrange func(kill func())) bool {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), l.podctl, l.args(l.crash.args)...)
	cmd.Env = append(os.Environ(), l.env)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	started, killed := make(chan struct{}), atomic.Bool{}
	kill := func() {
		<-started
		killed.Store(true)
		cmd.Process.Kill() //nolint:errcheck // the error is checked below
	}
	arrange(kill)
	err := l.await(func(report func(pid int)) error {
		return running(cmd)(func(pid int) {
			close(started)
			report(pid)
		})
	})
	l.proxy.Calm()
	l.cluster.calm()
	if err != nil && !killed.Load() {
		l.t.Errorf("%v: %v\n%s", l.crash.args, err, out.String())
	}
	return killed.Load()
}

// trace runs the command in a process and records its changes on disk. If nth is greater than 0, the process is killed
// before that change.
func (l *crashLab) trace(nth int) *runtimetest.Traced {
	l.t.Helper()
	output, err := os.Create(l.path("output"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer output.Close() //nolint:errcheck // it is only read after a failure
	argv := append([]string{l.podctl}, l.args(l.crash.args)...)
	traced := &runtimetest.Traced{}
	err = l.await(func(started func(pid int)) (err error) {
		program := runtimetest.Program{Args: argv, Env: append(os.Environ(), l.env), Output: output, Started: started}
		traced, err = runtimetest.Trace(l.t.Context(), program, nth)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	if traced.ExitCode != 0 && !traced.Killed {
		text, readErr := os.ReadFile(output.Name())
		l.t.Errorf("%v: exit code %d\n%s%v", l.crash.args, traced.ExitCode, text, readErr)
	}
	return traced
}

// state returns the complete state: records of the runtime, files, mounts and cgroups.
func (l *crashLab) state() []string {
	l.t.Helper()
	lines := slices.Concat(l.records(), l.files(l.stateDir), l.files(l.logRoot), strings.Fields(l.mounts()),
		l.cgroups(), l.more(), l.cluster.state())
	for i, line := range lines {
		lines[i] = timeless(strings.NewReplacer(
			l.logRoot, "/logs",
			l.stateDir, "/state",
			"/"+l.cgroupRoot, "/ROOT",
			slicePrefix(l.cgroupRoot), "ROOT",
		).Replace(line))
	}
	slices.Sort(lines)
	// A killed pass and a pass without changes record no event.
	return slices.DeleteFunc(lines, func(line string) bool { return eventsFile.MatchString(line) })
}

var eventsFile = regexp.MustCompile(`^/state/events/[^.]+\.json `)

// varying has patterns for texts that vary between runs, with their replacements.
var varying = func() map[*regexp.Regexp]string {
	all := map[*regexp.Regexp]string{}
	for pattern, with := range map[string]string{
		`/\d+\.log`:                         "/N.log",
		`/\.\.\d{4}_[\d_]+\.?\d*`:           "/..TIME",
		`(/containers/\w+)/[0-9a-f]+`:       "$1/HEX",
		`[0-9a-f]{64}`:                      "ID",
		`(/\.deleted/[^/ ]+)\.\d{8}-[\d.]+`: "$1.TIME",
		// The last holder of a pod's lock.
		`(/locks/[0-9a-f-]+\.lock \S+).*`: "$1",
	} {
		all[regexp.MustCompile(pattern)] = with
	}
	return all
}()

// timeless replaces the varying parts of a line: attempts, times and random names.
func timeless(line string) string {
	for pattern, with := range varying {
		line = pattern.ReplaceAllString(line, with)
	}
	return line
}

// listRuntime returns all sandboxes and containers.
func (l *crashLab) listRuntime() ([]*runtimeapi.PodSandbox, []*runtimeapi.Container) {
	l.t.Helper()
	conn, err := grpc.NewClient("unix://"+l.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was only used for requests
	cri := runtimeapi.NewRuntimeServiceClient(conn)
	sandboxes, err := cri.ListPodSandbox(l.t.Context(), &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		l.t.Fatal(err)
	}
	containers, err := cri.ListContainers(l.t.Context(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		l.t.Fatal(err)
	}
	return sandboxes.GetItems(), containers.GetContainers()
}

func (l *crashLab) records() []string {
	l.t.Helper()
	sandboxes, containers := l.listRuntime()
	var lines []string
	for _, s := range sandboxes {
		lines = append(lines, fmt.Sprintf("sandbox of %s %s", s.GetMetadata().GetName(), s.GetState()))
	}
	for _, c := range containers {
		name := c.GetMetadata().GetName()
		lines = append(lines, fmt.Sprintf("container %s of %s %s %s", name, c.GetLabels()["io.kubernetes.pod.name"],
			c.GetState(), c.GetImage().GetImage()))
		if name == "healthy" {
			if l.healthy == "" {
				l.healthy = c.GetId()
			}
			if l.healthy != c.GetId() {
				l.t.Error("the other, healthy pod was restarted")
			}
		}
	}
	return lines
}

// files returns the names below a directory with their types and modes. For files in volumes and locks it includes the
// contents.
func (l *crashLab) files(dir string) []string {
	l.t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if path == filepath.Join(l.stateDir, "pulled") {
			// The record of images that podctl pulled. After a kill between a pull and its record, the agent does not
			// remove the image, like images that others pulled.
			return fs.SkipDir
		}
		if path == filepath.Join(l.stateDir, "image_manager") && !l.crash.agent {
			// After a kill, the mark of a pull stays until an agent settles it (TestSettle). It protects the image.
			return fs.SkipDir
		}
		if path == filepath.Join(l.stateDir, "node") || (path != dir && path == l.logRoot) {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		if entry.IsDir() && l.isOfStore(path) {
			return nil
		}
		line, err := fileLine(path, entry)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // An agent has just removed it.
		}
		lines = append(lines, line)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return lines
}

func fileLine(path string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	content := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		content, err = os.Readlink(path)
		content = "-> /" + content
	case info.Mode().IsRegular() && (strings.Contains(path, "/volumes/") || strings.Contains(path, "/locks/")):
		var text []byte
		text, err = os.ReadFile(path)
		content = fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%s %s %s", path, info.Mode(), content), err
}

// mounts returns the mount points below the lab's directory.
func (l *crashLab) mounts() string {
	l.t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		l.t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.HasPrefix(fields[4], l.stateDir+"/") {
			found = append(found, fields[4])
		}
	}
	return strings.Join(found, " ")
}

// cgroups returns the directories below the lab's cgroup root, in any hierarchy.
func (l *crashLab) cgroups() []string {
	l.t.Helper()
	lines, err := cgroupsBelow(l.cgroupRoot)
	if err != nil {
		l.t.Fatal(err)
	}
	return lines
}

// undisturbed is the result of a command that is not killed.
type undisturbed struct {
	// state is the state after the command, gone the state after the deletion of the pod.
	state, gone []string
	points      []point
	newLab      newLab
}

// point is a point at which the process is killed.
type point struct {
	name string
	// kill runs the command up to the point, and reports whether the point was reached. The order of concurrent calls
	// can vary.
	kill func(*crashLab) bool
}

// newLab creates a lab for a crash.
type newLab func(*testing.T, crash) *crashLab

func (newLab newLab) measure(t *testing.T, c crash) undisturbed {
	t.Helper()
	l := newLab(t, c)
	defer l.close()
	traced := l.trace(0)
	u := undisturbed{newLab: newLab, points: append(l.callPoints(), changePoints(traced.Changes)...)}
	u.points = append(u.points, l.cluster.points()...)
	l.again()
	u.state = l.state()
	l.deletePod()
	u.gone = l.state()
	return u
}

// callPoints returns the points before and after each call of the command. A kill at a call that only reads has the
// effect of a kill after the change before it. These points are only tried if all points are.
func (l *crashLab) callPoints() []point {
	var points []point
	writes, count := l.proxy.Writes(), map[string]int{}
	for _, method := range l.proxy.Calls() {
		count[method]++
		nth := count[method]
		before := func(kill func()) runtimetest.Disturbance {
			return runtimetest.Disturbance{Method: method, Nth: nth, Kill: kill}
		}
		after := func(kill func()) runtimetest.Disturbance {
			return runtimetest.Disturbance{Method: method, Nth: nth, KillAfter: kill}
		}
		if !slices.Contains(writes, method) && os.Getenv(crashVar) == "" {
			continue
		}
		points = append(points,
			point{fmt.Sprintf("before %s %d", method, nth), func(l *crashLab) bool { return l.killedAtCall(before) }},
			point{fmt.Sprintf("after %s %d", method, nth), func(l *crashLab) bool { return l.killedAtCall(after) }})
	}
	return sample(points, math.MaxInt)
}

// changePoints returns the points before each change on disk.
func changePoints(changes []string) []point {
	points := make([]point, 0, len(changes))
	for i, change := range changes {
		points = append(points, point{
			fmt.Sprintf("change %d, here %s", i+1, change), func(l *crashLab) bool { return l.trace(i + 1).Killed },
		})
	}
	return sample(points, changesTried)
}

// changesTried is the number of changes per command in a normal run of the tests. The choice is random, so that
// repeated runs cover all changes.
const changesTried = 16

// sample returns all points with crashVar, three in short tests, and otherwise some.
func sample(points []point, some int) []point {
	switch {
	case os.Getenv(crashVar) != "":
		return points
	case testing.Short():
		some = 3
	}
	return spread(points, some)
}

// spread returns some of the points at even distances, starting at a random one.
func spread(points []point, some int) []point {
	step := max(float64(len(points))/float64(some), 1)
	var taken []point
	for at := rand.Float64() * step; int(at) < len(points); at += step {
		taken = append(taken, points[int(at)])
	}
	return taken
}

// TestCrashMatrix runs several labs concurrently, because they mostly wait.
func TestCrashMatrix(t *testing.T) {
	all := crashes()
	if testing.Short() {
		maps.DeleteFunc(all, func(name string, _ crash) bool {
			return !slices.Contains([]string{"replace with a hook", "volumes' content", "delete after sidecar"}, name)
		})
	}
	slots := make(chan struct{}, 2*goruntime.GOMAXPROCS(0))
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newLab(newCrashLab).measure(t, c)
			u.survivesAll(t, c, slots)
		})
	}
}

// survivesAll tries all points. slots limits how many run concurrently. Most points must be reached. A node may send
// two statuses in one request, so some of its points may not come.
func (u *undisturbed) survivesAll(t *testing.T, c crash, slots chan struct{}) {
	t.Helper()
	var reached atomic.Int32
	var group sync.WaitGroup
	for i, p := range u.points {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if u.survives(t, c, p, i) {
				reached.Add(1)
			}
		})
	}
	group.Wait()
	least := len(u.points) * 3 / 4
	if c.api {
		least = len(u.points) / 2
	}
	if n := int(reached.Load()); n < least {
		t.Errorf("only %d of %d points were reached", n, len(u.points))
	}
}

// survives kills the command at a point, and then runs it again, or in every third case deletes the pod. It checks that
// the state is the same as without the kill. It reports whether the point was reached.
func (u *undisturbed) survives(t *testing.T, c crash, p point, i int) bool {
	t.Helper()
	l := u.newLab(t, c)
	defer l.close()
	reached := p.kill(l)
	// A killed agent may have points after it has reached its goal. The following agents stop at the goal.
	l.goal = u.state
	if i%3 == 2 {
		l.deletePod()
		missing, left := l.settled(func() (missing, left []string) {
			return compare(withoutDeletedLogs(u.gone), withoutDeletedLogs(l.state()))
		})
		l.complain("deleted after a kill at "+p.name, missing, left)
		return reached
	}
	l.again()
	l.again()
	missing, left := l.settled(func() (missing, left []string) {
		missing, left = compare(u.state, l.state())
		if c.args[0] == "restart" {
			// An additional restart may have completed, and each restart leaves a log.
			left = slices.DeleteFunc(left, func(line string) bool { return strings.Contains(line, "/N.log ") })
		}
		return missing, left
	})
	if l.patience > 0 && len(missing) == 0 && onlyCutOffStarts(left) {
		l.deletePod()
		missing, left = l.settled(func() (missing, left []string) {
			return compare(withoutDeletedLogs(u.gone), withoutDeletedLogs(l.state()))
		})
	}
	l.complain("killed at "+p.name, missing, left)
	return reached
}

// cutOffStart matches the leftovers of a start that ran in another goroutine when podctl was killed. A real runtime
// aborts such a start. It keeps the record of a failed run with its log, and sometimes a task without a process. All
// are removed with the record.
var cutOffStart = regexp.MustCompile(
	`^container \w+ of \w+ CONTAINER_EXITED|/N\.log |/containers/\w+/HEX |/pod[0-9a-f-]{36}/ID$|/k8s\.io/ID/rootfs$`)

// onlyCutOffStarts reports whether all extra lines can be leftovers of interrupted starts, with at least one record.
func onlyCutOffStarts(left []string) bool {
	return slices.ContainsFunc(left, func(line string) bool { return strings.Contains(line, "CONTAINER_EXITED") }) &&
		!slices.ContainsFunc(left, func(line string) bool { return !cutOffStart.MatchString(line) })
}

// withoutDeletedLogs removes the lines of archived logs. The logs that a deleted pod had can vary.
func withoutDeletedLogs(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines),
		func(line string) bool { return strings.HasPrefix(line, "/logs/.deleted") })
}

func (l *crashLab) complain(what string, missing, left []string) {
	l.t.Helper()
	if len(missing)+len(left) > 0 {
		l.t.Errorf("%s\nmissing:\n  %s\nleft:\n  %s", what, strings.Join(missing, "\n  "), strings.Join(left, "\n  "))
	}
}

// settled repeats a check until resources that disappear by themselves are gone, such as the processes of a runtime.
func (l *crashLab) settled(look func() (missing, left []string)) (missing, left []string) {
	for range 50 {
		if missing, left = look(); len(missing)+len(left) == 0 || l.patience == 0 {
			break
		}
		time.Sleep(l.patience)
	}
	return missing, left
}

// isOfStore reports whether a directory is for stored workloads and objects. A kill after the removal of the last
// object leaves an empty directory for the next one.
func (l *crashLab) isOfStore(dir string) bool {
	return slices.ContainsFunc([]string{"workloads", "objects"}, func(name string) bool {
		return dir == filepath.Join(l.stateDir, name) || strings.HasPrefix(dir, filepath.Join(l.stateDir, name)+"/")
	})
}

func compare(want, got []string) (missing, left []string) {
	return subtract(want, got), subtract(got, want)
}

// subtract returns the lines of a that are not in b. It counts duplicates.
func subtract(a, b []string) []string {
	b = slices.Clone(b)
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool {
		i := slices.Index(b, line)
		if i >= 0 {
			b = slices.Delete(b, i, i+1)
		}
		return i >= 0
	})
}

// mountedShapes returns pods whose volumes are mounts of the machine, which need root.
func mountedShapes() map[string]runtimetest.Shape {
	mounted := `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  volumes:
  - {name: v, emptyDir: {}}
  - {name: m, emptyDir: {medium: Memory}}
  - {name: c, configMap: {name: cm}}
  - {name: s, secret: {secretName: sec}}
  containers:
  - name: a
    image: 'i:1'
    volumeMounts:
    - {name: v, mountPath: /v, subPath: deep/down}
    - {name: m, mountPath: /m}
    - {name: c, mountPath: /c}
    - {name: c, mountPath: /one, subPath: k}
    - {name: s, mountPath: /s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data: {k: v}
---
apiVersion: v1
kind: Secret
metadata: {name: sec}
stringData: {password: correct horse}
`
	content := strings.NewReplacer("data: {k: v}", "data: {k: other, more: x}", "correct horse", "battery staple")
	return map[string]runtimetest.Shape{
		"mounted volumes":   {After: mounted},
		"volumes' content":  {Before: mounted, After: content.Replace(mounted)},
		"delete of volumes": {Before: mounted},
	}
}
