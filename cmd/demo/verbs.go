package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// exit ends with a code: exit [--after D] [--message TEXT] CODE.
func exit(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("exit", flag.ContinueOnError)
	after := f.Duration("after", 0, "how long to run before")
	message := f.String("message", "", "text for /dev/termination-log")
	if err := f.Parse(args); err != nil {
		return err
	}
	code, err := strconv.Atoi(f.Arg(0))
	if err != nil {
		return fmt.Errorf("exit needs a code: %w", err)
	}
	pause(ctx, *after)
	if *message != "" {
		if err := os.WriteFile("/dev/termination-log", []byte(*message), 0o644); err != nil {
			return err
		}
	}
	fmt.Println("exiting with", code)
	return exitError(code)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// sleep runs until it gets a signal: sleep [--ignore] [--drain D] [--code N] [--memory MIB].
func sleep(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("sleep", flag.ContinueOnError)
	ignore := f.Bool("ignore", false, "go on in spite of a signal")
	drain := f.Duration("drain", 0, "how long to go on after a signal")
	code := f.Int("code", 0, "exit code after a signal")
	memory := f.Int("memory", 0, "how much memory to hold, in MiB")
	if err := f.Parse(args); err != nil {
		return err
	}
	held := bytes.Repeat([]byte{1}, *memory<<20)
	fmt.Println("sleeping")
	<-ctx.Done()
	goruntime.KeepAlive(held)
	fmt.Println("got a signal")
	if *ignore {
		select {}
	}
	time.Sleep(*drain)
	return exitError(*code)
}

// printAll shows the container's environment: print [FILE...].
func printAll(ctx context.Context, args []string) error {
	env := os.Environ()
	slices.Sort(env)
	for _, e := range env {
		fmt.Println("env", e)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("hostname", host)
	fmt.Println("user", os.Getuid(), os.Getgid())
	fmt.Println("args", strings.Join(os.Args, " "))
	return read(ctx, args)
}

// write writes a file: write FILE TEXT.
func write(_ context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("write needs a file and a text")
	}
	if err := os.MkdirAll(filepath.Dir(args[0]), 0o755); err != nil {
		return err
	}
	fmt.Println("writing", args[0])
	return os.WriteFile(args[0], []byte(args[1]+"\n"), 0o644)
}

// read shows files with their modes and owners, and fails when one is missing: read FILE...
func read(_ context.Context, args []string) error {
	for _, name := range args {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		owner, _ := info.Sys().(*syscall.Stat_t)
		fmt.Printf("file %s mode %o owner %d:%d\n%s", name, info.Mode().Perm(), owner.Uid, owner.Gid, text)
	}
	return nil
}

// check succeeds or fails like a probe: check file FILE, check http URL, check
// tcp ADDRESS.
func check(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("check needs a kind and an address")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	switch args[0] {
	case "file":
		_, err := os.Stat(args[1])
		return err
	case "http":
		reply, err := fetch(ctx, args[1])
		if err == nil && reply.StatusCode >= http.StatusBadRequest {
			err = fmt.Errorf("status %s", reply.Status)
		}
		return err
	case "tcp":
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", args[1])
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return fmt.Errorf("cannot check %q", args[0])
}

// fetch prints the answer of an HTTP server.
func fetch(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(os.Stdout, reply.Body)
	return reply, errors.Join(err, reply.Body.Close())
}

// writeLines writes lines: log [--lines N] [--every D] [--stderr] [--forever].
func writeLines(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("log", flag.ContinueOnError)
	lines := f.Int("lines", 10, "how many")
	every := f.Duration("every", 0, "pause between two")
	toErr := f.Bool("stderr", false, "write to standard error")
	forever := f.Bool("forever", false, "do not stop")
	if err := f.Parse(args); err != nil {
		return err
	}
	out := os.Stdout
	if *toErr {
		out = os.Stderr
	}
	for i := 1; (*forever || i <= *lines) && ctx.Err() == nil; i++ {
		if _, err := fmt.Fprintf(out, "line %d\n", i); err != nil {
			return err
		}
		pause(ctx, *every)
	}
	return nil
}

// cat copies its input to its output: cat.
func cat(context.Context, []string) error {
	_, err := io.Copy(os.Stdout, os.Stdin)
	return err
}

// get prints the answer of an HTTP server, or fails without one: get [--within D] URL.
func get(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("get", flag.ContinueOnError)
	within := f.Duration("within", 2*time.Second, "how long to wait for the answer")
	if err := f.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()
	_, err := fetch(ctx, f.Arg(0))
	return err
}
