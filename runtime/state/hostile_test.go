package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
)

// victimTree returns a directory outside of podctl's, with files that have names of podctl's files.
func victimTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"0.log", "1.log", "0.log.20260301-120000", "app/0.log", "file"} {
		write(t, filepath.Join(dir, name), "precious")
	}
	return dir
}

// listing returns names, modes, owners and contents of a tree.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err = unix.Lstat(path, &st); err != nil {
			return err
		}
		content := []byte{}
		if entry.Type().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&text, "%s %o %d:%d %s\n", path, st.Mode, st.Uid, st.Gid, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// wantUnchanged records the state of a tree. It returns a function that checks that the state is the same.
func wantUnchanged(t *testing.T, dir string) func() {
	t.Helper()
	before := listing(t, dir)
	return func() {
		t.Helper()
		if after := listing(t, dir); after != before {
			t.Errorf("outside something has changed:\n%s\nit was\n%s", after, before)
		}
	}
}

// logWork returns all operations of podctl on the logs of a pod.
func logWork(pod Pod) map[string]func() error {
	return map[string]func() error{
		"MakeLogDir":      func() error { return pod.Logs("default", "web").Make("app") },
		"LinkLog":         func() error { return pod.Logs("default", "web").Link("app", "id", 0) },
		"RemoveLogs":      func() error { return pod.Logs("default", "web").Remove("app", "id", 0) },
		"RemoveOlderLogs": func() error { return pod.Logs("default", "web").RemoveOlder("app", 1) },
		"LogsSize":        func() error { pod.Logs("default", "web").Size("app", 0); return nil },
		"LastLogAttempt":  func() error { pod.Logs("default", "web").Last("app"); return nil },
		"SetAsideLogs":    func() error { return pod.Logs("default", "web").Archive(testTime()) },
		"RemoveAllLogs":   func() error { return pod.Logs("default", "web").RemoveAll() },
		"prune": func() error {
			logs, err := pod.layout.DeletedLogs().List()
			for _, d := range logs {
				err = errors.Join(err, pod.layout.DeletedLogs().Remove(d))
			}
			return err
		},
	}
}

// TestLogsDoNotFollowLinks puts links, pipes and files in place of log directories, as a container that ships logs
// could. It checks that nothing outside the log root changes, and that the pod can be deleted.
func TestLogsDoNotFollowLinks(t *testing.T) {
	places := map[string]func(p Pod) string{
		"the pod's directory":       func(p Pod) string { return ok(p.Logs("default", "web").Dir()) },
		"the container's directory": func(p Pod) string { return ok(p.Logs("default", "web").ContainerDir("app")) },
		"the log":                   func(p Pod) string { return ok(p.Logs("default", "web").File("app", 0)) },
		"the deleted logs":          func(p Pod) string { return p.layout.DeletedLogs().Dir() },
		"a deleted log": func(p Pod) string {
			return filepath.Join(p.layout.DeletedLogs().Dir(), "default_web_"+testUID+".20260301-123015.123456")
		},
	}
	for place, path := range places {
		for what, plant := range map[string]func(victim, path string) error{
			"a link":      os.Symlink,
			"a pipe":      func(_, path string) error { return mkfifo(path) },
			"a file":      func(_, path string) error { return os.WriteFile(path, nil, 0o600) },
			"a directory": func(_, path string) error { return os.Mkdir(path, 0o700) },
		} {
			for name := range logWork(Pod{}) {
				t.Run(place+" "+what+" "+name, func(t *testing.T) {
					pod, victim := newLayout(t).Pod(testUID), victimTree(t)
					unchanged := wantUnchanged(t, victim)
					writeLogs(t, pod, "default", "web")
					write(t, filepath.Join(pod.layout.DeletedLogs().Dir(), "default_web_"+testUID+".20250301-123015.123456", "x"), "")
					if err := errors.Join(
						os.RemoveAll(path(pod)),
						os.MkdirAll(filepath.Dir(path(pod)), 0o755),
						plant(victim, path(pod)),
					); err != nil {
						t.Fatal(err)
					}
					_ = logWork(pod)[name]()
					unchanged()
					if err := pod.Logs("default", "web").Archive(testTime().Add(time.Second)); err != nil {
						t.Errorf("deleting the pod: %v", err)
					}
					wantGone(t, ok(pod.Logs("default", "web").Dir()))
					unchanged()
				})
			}
		}
	}
}

// TestLogsWhileDirectoriesAreSwapped does the same while the attacker replaces each directory with a link and back
// during all operations.
func TestLogsWhileDirectoriesAreSwapped(t *testing.T) {
	pod, victim := newLayout(t).Pod(testUID), victimTree(t)
	if err := pod.Logs("default", "web").Make("app"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(pod.layout.DeletedLogs().Dir(), "default_web_"+testUID+".20250301-123015.123456", "0.log"), "")
	paths := []string{
		ok(pod.Logs("default", "web").Dir()),
		ok(pod.Logs("default", "web").ContainerDir("app")),
		pod.layout.DeletedLogs().Dir(),
	}
	var links []string
	for i := range paths {
		link := filepath.Join(pod.layout.LogRoot, fmt.Sprintf("link-%d", i))
		if err := os.Symlink(victim, link); err != nil {
			t.Fatal(err)
		}
		links = append(links, link)
	}
	unchanged := wantUnchanged(t, victim)
	stop := make(chan struct{})
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				swap(links[i%3], paths[i%3])
			}
		}
	})
	for range 150 {
		for _, work := range logWork(pod) {
			_ = work()
		}
		if dir, err := pod.Logs("default", "web").Open("app"); err == nil {
			for n := range 2 {
				_ = dir.Touch(fmt.Sprintf("%d.log", n), 0o600)
			}
			_ = dir.Close()
		}
	}
	close(stop)
	attacker.Wait()
	unchanged()
}

// swap exchanges two names. It does not follow the attacker's own links, because it would then change the victim
// itself.
func swap(link, path string) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == nil {
		_ = unix.Renameat2(unix.AT_FDCWD, link, dir, filepath.Base(path), unix.RENAME_EXCHANGE)
		_ = unix.Close(dir)
	}
}

// TestClaimNamesThatArePathsAreRefused checks that a claimName that is a path is never opened, created, removed or
// listed.
func TestClaimNamesThatArePathsAreRefused(t *testing.T) {
	l := newLayout(t)
	pod := l.Pod(testUID)
	if err := pod.Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(filepath.Dir(l.Root), "victim")
	write(t, filepath.Join(victim, "file"), "precious")
	write(t, filepath.Join(l.Claims().dir(), "default", "data", "inner", "file"), "precious")
	unchanged := wantUnchanged(t, filepath.Dir(l.Root))
	for _, name := range []string{
		"../../../victim", "../../pods", "../other", "data/inner", "/etc", "", ".", "..", ".aside", ".removed",
		".hidden", "a\x00b", "../default/data",
		"x\ny", "x\x1b[2J", "x\x7f", "x\u0085y", "x\u2028y", "x\u202ey", "x\xffy",
	} {
		_, pathErr := pod.Claims().Dir(Claim{Namespace: "default", Name: name})
		_, openErr := pod.Claims().Open(Claim{Namespace: "default", Name: name})
		_, makeErr := pod.Claims().Make(t.Context(), Claim{Namespace: "default", Name: name}, 0o777)
		for what, err := range map[string]error{
			"path": pathErr, "opening": openErr, "making": makeErr, "removing": pod.Claims().Remove(t.Context(),
				Claim{Namespace: "default", Name: name}, func() error { return nil }),
		} {
			if refused := (*NameError)(nil); !errors.As(err, &refused) || refused.Kind != "claimName" || refused.Name != name {
				t.Errorf("%s the claim %q: %v, want that it is refused", what, name, err)
			}
		}
		_, nsErr := pod.Claims().Dir(Claim{Namespace: name, Name: "data"})
		if _, err := pod.Claims().Make(t.Context(), Claim{Namespace: name, Name: "data"}, 0o777); err == nil || nsErr == nil {
			t.Errorf("namespace %q: %v %v", name, err, nsErr)
		}
	}
	unchanged()
	if claims, err := l.Claims().List(); err != nil || !slices.Equal(claims, []Claim{{"default", "data"}}) {
		t.Errorf("claims are %v %v", claims, err)
	}
}

// TestClaimsThatAreLinks checks that a file that is no directory in place of a claim is not entered.
func TestClaimsThatAreLinks(t *testing.T) {
	l := newLayout(t)
	pod, victim := l.Pod(testUID), victimTree(t)
	unchanged := wantUnchanged(t, victim)
	if err := errors.Join(l.Prepare(), os.MkdirAll(filepath.Join(l.Claims().dir(), "default"), 0o711)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(l.Claims().dir(), "default", "data")); err != nil {
		t.Fatal(err)
	}
	if _, err := pod.Claims().Open(Claim{Namespace: "default", Name: "data"}); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("opening: %v", err)
	}
	if _, err := pod.Claims().Make(t.Context(), Claim{Namespace: "default", Name: "data"}, 0o777); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("making: %v", err)
	}
	if claims, err := l.Claims().List(); err != nil || len(claims) > 0 {
		t.Errorf("claims are %v %v", claims, err)
	}
	if err := pod.Claims().Remove(t.Context(), Claim{Namespace: "default", Name: "data"}, func() error { return nil }); err != nil {
		t.Error(err)
	}
	unchanged()
}

// claimFiles returns the files of all claims.
func claimFiles(t *testing.T, l Layout) []string {
	t.Helper()
	var files []string
	_ = filepath.WalkDir(l.Claims().dir(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, strings.TrimPrefix(path, l.Claims().dir()+"/"))
		}
		return nil
	})
	return files
}

// TestRemovalsAtOnce checks that parallel removals of claims in one namespace do not remove each other's directory of
// condemned claims.
func TestRemovalsAtOnce(t *testing.T) {
	l := newLayout(t)
	var claims []Claim
	for i := range 200 {
		claims = append(claims, Claim{"default", fmt.Sprintf("data-%d", i)})
		dir, err := l.Pod(testUID).Claims().Make(t.Context(), claims[i], 0o777)
		if err = errors.Join(err, dir.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for _, c := range claims {
		group.Go(func() {
			if err := l.Claims().Remove(t.Context(), c, func() error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if left := names(t, filepath.Join(l.Claims().dir(), "default")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestRemovalOfAClaimThatWasCutOff checks that a claim with a name of any length can be removed, and stays if it is
// needed. Leftovers of a kill are found and removed by the next prune.
func TestRemovalOfAClaimThatWasCutOff(t *testing.T) {
	name := strings.Repeat("n", 253)
	setUp := func(t *testing.T) (Layout, Pod, Claim) {
		t.Helper()
		l := newLayout(t)
		dir, err := l.Pod(testUID).Claims().Make(t.Context(), Claim{Namespace: "default", Name: name}, 0o777)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(dir.Touch("file", 0o600), dir.Close()); err != nil {
			t.Fatal(err)
		}
		return l, l.Pod(testUID), Claim{"default", name}
	}
	t.Run("needed", func(t *testing.T) {
		l, _, c := setUp(t)
		needed := errors.New("needed")
		if err := l.Claims().Remove(t.Context(), c, func() error { return needed }); !errors.Is(err, needed) {
			t.Error(err)
		}
		if files := claimFiles(t, l); !slices.Equal(files, []string{"default/" + name + "/file"}) {
			t.Errorf("files are %v", files)
		}
		if left := names(t, filepath.Join(l.Claims().dir(), "default")); len(left) != 1 {
			t.Errorf("left are %v", left)
		}
	})
	// The panic acts as a kill: the code after it does not run.
	kill := func(l Layout, c Claim) {
		defer func() { _ = recover() }()
		_ = l.Claims().Remove(t.Context(), c, func() error { panic("killed") })
	}
	t.Run("killed at the last check", func(t *testing.T) {
		l, pod, c := setUp(t)
		kill(l, c)
		dir, err := pod.Claims().Make(t.Context(), Claim{Namespace: "default", Name: name}, 0o777)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close() //nolint:errcheck // A handle on a directory.
		if _, err := dir.Lstat("file"); err != nil {
			t.Error(err)
		}
	})
	t.Run("created while it is read", func(t *testing.T) {
		l, pod, c := setUp(t)
		made := make(chan error, 1)
		err := l.Claims().Remove(t.Context(), c, func() error {
			if _, err := l.Locks().takeOwn(expired(t), lockClaims, ""); !errors.As(err, new(*filelock.LockedError)) {
				t.Errorf("a pod can make the directory meanwhile: %v", err)
			}
			go func() {
				dir, err := pod.Claims().Make(t.Context(), c, 0o777)
				if err == nil {
					_, err = dir.Lstat("file")
					err = errors.Join(err, dir.Close())
				}
				made <- err
			}()
			return nil
		})
		if err = errors.Join(err, safefs.IgnoreMissing(<-made)); err != nil {
			t.Error(err)
		}
		if files := claimFiles(t, l); len(files) > 0 {
			t.Errorf("a pod has seen a removed file: %v", files)
		}
		if there := names(t, filepath.Join(l.Claims().dir(), "default")); !slices.Contains(there, name) {
			t.Errorf("the pod has no directory: %v", there)
		}
	})
	for what, plant := range map[string]string{
		"half removed": ".removed/" + name, "one that came after it": ".removed/" + name + " " + name,
	} {
		t.Run("removed by the next prune: "+what, func(t *testing.T) {
			l, _, c := setUp(t)
			if err := os.RemoveAll(filepath.Join(l.Claims().dir(), "default", name)); err != nil {
				t.Fatal(err)
			}
			for path := range strings.FieldsSeq(plant) {
				write(t, filepath.Join(l.Claims().dir(), "default", path, "file"), "x")
			}
			claims, err := l.Claims().List()
			if err != nil || !slices.Equal(claims, []Claim{c}) || l.Claims().Size(c) == 0 {
				t.Fatalf("claims are %v %v", claims, err)
			}
			if err := l.Claims().Remove(t.Context(), c, func() error { return nil }); err != nil {
				t.Error(err)
			}
			if left := names(t, filepath.Join(l.Claims().dir(), "default")); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// TestReservedLockNames checks that no pod can have the name of one of podctl's own locks.
func TestReservedLockNames(t *testing.T) {
	l := newLayout(t)
	ports, err := l.Locks().takeOwn(t.Context(), lockPorts, "")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := l.Locks().IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{"ports", "ids"} {
		lock, err := l.Pod(uid).Lock(expired(t))
		if err != nil {
			t.Errorf("the pod with uid %s is locked: %v", uid, err)
			continue
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	}
	for _, uid := range []types.UID{lockIDs, lockPorts, lockNode, lockObjects, lockWorkloads, lockServices, lockClaims, "_", "a_b"} {
		if _, err := l.Pod(uid).Lock(expired(t)); err == nil || !strings.Contains(err.Error(), "metadata.uid") {
			t.Errorf("uid %s: %v, want that it is refused", uid, err)
		}
	}
	if err := errors.Join(ports.Unlock(), ids.Unlock()); err != nil {
		t.Error(err)
	}
	if left := names(t, l.Locks().dir()); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestFilesPlantedInThePlaceOfPods checks that files with foreign names or of a wrong type among checkpoints, events,
// claims and deleted logs are ignored and hide nothing.
func TestFilesPlantedInThePlaceOfPods(t *testing.T) {
	l := newLayout(t)
	pod := l.Pod(testUID)
	claim, err := pod.Claims().Make(t.Context(), Claim{Namespace: "default", Name: "data"}, 0o777)
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(
		claim.Close(),
		pod.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 3}}),
		pod.History().Write(&History{}),
		pod.Logs("default", "web").Make("app"),
	); err != nil {
		t.Fatal(err)
	}
	if err = pod.Logs("default", "web").Archive(testTime()); err != nil {
		t.Fatal(err)
	}
	object := ObjectKey{"default", "Secret", "mine"}
	if err = l.Objects().Write(object, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	victim := victimTree(t)
	for _, name := range []string{".x", "a_b", "_ids", strings.Repeat("y", 250), "link", "pipe", "file", "line\nbreak"} {
		for _, dir := range []string{
			l.Objects().dir(),
			l.Objects().dir("default"),
			l.Objects().dir("default", "secrets"),
			l.pods(),
			l.Histories().dir(),
			l.Claims().dir(),
			filepath.Join(l.Claims().dir(), "default"),
			l.Locks().dir(),
			l.DeletedLogs().Dir(),
		} {
			if err = os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			switch name {
			case "link":
				err = errors.Join(os.Symlink(victim, path), os.Symlink(victim, path+".json"))
			case "pipe":
				err = errors.Join(mkfifo(path), mkfifo(path+".json"))
			case "file":
				write(t, path, "")
			default:
				write(t, filepath.Join(path, "checkpoint.json"), "{}")
				if len(name) < 250 {
					write(t, path+".json", "{}")
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	unchanged, before := wantUnchanged(t, victim), wantUnchanged(t, l.Claims().dir())
	entries, err := l.Pods().Checkpoints()
	mine := slices.ContainsFunc(entries, func(e Entry) bool { return e.UID == testUID && e.Err == nil && e.Checkpoint.Generation == 3 })
	if err != nil || !mine {
		t.Errorf("checkpoints are %+v %v", entries, err)
	}
	histories, err := l.Histories().All()
	if err != nil || !slices.ContainsFunc(histories, func(h *History) bool { return h.Pod.UID == testUID }) {
		t.Errorf("events are %+v %v", histories, err)
	}
	claims, err := l.Claims().List()
	if err != nil || !slices.Contains(claims, Claim{"default", "data"}) {
		t.Errorf("claims are %+v %v", claims, err)
	}
	objects, err := l.Objects().List()
	if err != nil || !slices.Contains(objects, object) ||
		slices.ContainsFunc(objects, func(k ObjectKey) bool { return k.check() != nil || k.Name == "link" }) {
		t.Errorf("objects are %+v %v", objects, err)
	}
	logs, err := l.DeletedLogs().List()
	if err != nil || len(logs) != 1 {
		t.Errorf("deleted logs are %+v %v", logs, err)
	}
	leftovers, err := l.Pods().Leftovers()
	if err != nil {
		t.Error(err)
	}
	if _, err := pod.IDs().Allocate(t.Context()); err != nil {
		t.Error(err)
	}
	for _, uid := range leftovers {
		if err := l.Pod(uid).check(); err != nil {
			t.Error(err)
		}
	}
	for _, e := range entries {
		if err := l.Pod(e.UID).check(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range claims {
		if err := c.check(); err != nil {
			t.Error(err)
		}
	}
	unchanged()
	before()
}

// TestStateBelowALinkOfAnotherUser checks that missing parents of the state directory and the log root are not created
// behind another user's link.
func TestStateBelowALinkOfAnotherUser(t *testing.T) {
	base, victim := t.TempDir(), t.TempDir()
	link := filepath.Join(base, "link")
	if err := errors.Join(os.Symlink(victim, link), os.Lchown(link, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	pod := Layout{Root: filepath.Join(link, "a", "state"), LogRoot: filepath.Join(link, "b", "pods")}.Pod(testUID)
	for what, err := range map[string]error{
		"the checkpoint": pod.Checkpoint().Write(&Checkpoint{}),
		"logs":           pod.Logs("default", "web").Make("app"),
		"a directory":    pod.MakeDir(pod.Volumes(), 0o750),
	} {
		foreign := (*safefs.LinkError)(nil)
		if !errors.Is(err, ErrUnsafe) && (!errors.As(err, &foreign) || foreign.UID != 65534) {
			t.Errorf("%s: %v, want that the link is refused", what, err)
		}
	}
	if left := names(t, victim); len(left) > 0 {
		t.Errorf("there are %v now", left)
	}
}

// TestStateBelowADirectoryOfAnotherUser checks that a state directory below another user's directory is refused,
// because that user could replace it between two looks.
func TestStateBelowADirectoryOfAnotherUser(t *testing.T) {
	his := filepath.Join(t.TempDir(), "his")
	root := filepath.Join(his, "state")
	if err := errors.Join(os.MkdirAll(root, 0o700), os.Chown(his, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	l := Layout{Root: root, LogRoot: filepath.Join(root, "logs")}
	_, readErr := l.Pod(testUID).Checkpoint().Read()
	for what, err := range map[string]error{
		"reading": readErr,
		"writing": l.Pod(testUID).Checkpoint().Write(&Checkpoint{}),
		"the key": l.DigestKey().Make(),
	} {
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestFilesInPlaceOfALogAreRemoved checks that other files in place of a log are removed, because the runtime opens any
// file with that name.
func TestFilesInPlaceOfALogAreRemoved(t *testing.T) {
	l := newLayout(t)
	pod, victim := l.Pod(testUID), filepath.Join(t.TempDir(), "victim")
	if err := pod.Logs("default", "web").Make("app"); err != nil {
		t.Fatal(err)
	}
	log, err := pod.Logs("default", "web").File("app", 1)
	if err == nil {
		err = os.WriteFile(victim, []byte("victim"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for what, plant := range map[string]func() error{
		"a link": func() error { return os.Symlink(victim, log) }, "a link to nothing": func() error { return os.Symlink(victim+"2", log) },
		"another name of a file": func() error { return os.Link(victim, log) }, "a pipe": func() error { return unix.Mkfifo(log, 0o600) },
		"a directory": func() error { return os.MkdirAll(log+"/a/b", 0o700) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if err := pod.Logs("default", "web").Clear("app", 1); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(log); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", what, err)
		}
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "victim" {
		t.Errorf("the file outside: %q %v", text, err)
	}
	if err := os.WriteFile(log, []byte("a log"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := pod.Logs("default", "web").Clear("app", 1); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != "a log" {
		t.Errorf("the log: %q %v", text, err)
	}
}

// TestRootIsExchangedWhileItIsRead checks that podctl reads only from the checked directory, even if the state
// directory is replaced between check and use.
func TestRootIsExchangedWhileItIsRead(t *testing.T) {
	l := newLayout(t)
	forged := l.Root + ".forged"
	for _, root := range []string{l.Root, forged} {
		if err := os.MkdirAll(filepath.Join(root, "pods", testUID), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Pod(testUID).Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(forged, "pods", testUID, checkpointName), "forged")
	chmod(t, forged, 0o777)
	stop, exchanged := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				exchanged <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, l.Root, unix.AT_FDCWD, forged, unix.RENAME_EXCHANGE); err != nil {
				exchanged <- err
				return
			}
		}
	}()
	for range 5000 {
		if _, err := l.Pod(testUID).Checkpoint().Read(); err != nil && !errors.Is(err, ErrUnsafe) {
			t.Errorf("podctl believes another directory: %v", err)
			break
		}
	}
	close(stop)
	if err := <-exchanged; err != nil {
		t.Error(err)
	}
}

// TestNoLinkLeadsOutOfTheState checks that no link in place of one of podctl's directories is followed, regardless of
// its owner.
func TestNoLinkLeadsOutOfTheState(t *testing.T) {
	for name, work := range map[string]func(l Layout) error{
		"objects": func(l Layout) error { return l.Objects().Write(ObjectKey{"default", "Secret", "a"}, []byte("{}")) },
		"events":  func(l Layout) error { return l.Pod(testUID).History().Write(&History{}) },
		"pods":    func(l Layout) error { return l.Pod(testUID).Checkpoint().Write(&Checkpoint{}) },
		"pulled":  func(l Layout) error { return l.PulledImages().Add("x") },
		"locks": func(l Layout) error {
			lock, err := l.Pod(testUID).Lock(t.Context())
			if err == nil {
				err = lock.Unlock()
			}
			return err
		},
		"claims": func(l Layout) error {
			dir, err := l.Claims().Make(t.Context(), Claim{"default", "data"}, 0o777)
			if err == nil {
				err = dir.Close()
			}
			return err
		},
	} {
		l, victim := newLayout(t), victimTree(t)
		unchanged := wantUnchanged(t, victim)
		if err := errors.Join(l.Prepare(), os.Symlink(victim, filepath.Join(l.Root, name))); err != nil {
			t.Fatal(err)
		}
		if err := work(l); err == nil {
			t.Errorf("%s were written through a link", name)
		}
		unchanged()
	}
}
