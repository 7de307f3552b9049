package shim

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// Variables by which the tests speak to the test binary they start.
const (
	roleVariable   = "SHIM_TEST_ROLE"   // what to be instead of a test
	cgroupVariable = "SHIM_TEST_CGROUP" // a delegated cgroup, for an ordinary user
)

// A program may have opened descriptors, and started the poller of Go, before it turns into a shim: packages that are initialized
// earlier do. The tests are such a program. A pipe starts the poller.
var _ = func() error {
	r, w, err := os.Pipe()
	if err == nil {
		_, _ = r.Close(), w.Close()
	}
	_, err = unix.Open("/proc/self/cgroup", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return err
}()

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(playRole(role))
	}
	goleak.VerifyTestMain(m)
}

// bareCgroup is what Cgroup is where no PID namespace is available.
var bareCgroup = Layer("bare cgroup")

// layers are all of them, strongest first.
var layers = []Layer{PIDNamespace, bareCgroup, Group}

// only makes options those of exactly the layer wanted.
func only(o Options) Options {
	o.Require = true
	if o.Want == bareCgroup {
		o.Want, o.ways = Cgroup, ways(Cgroup)[4:]
	}
	return o
}

// eachLayer runs test with a slot of every layer.
func eachLayer(t *testing.T, test func(t *testing.T, s *Slot)) {
	t.Helper()
	eachLayerWith(t, Options{}, test)
}

// eachLayerWith does that with further options.
func eachLayerWith(t *testing.T, o Options, test func(t *testing.T, s *Slot)) {
	t.Helper()
	for _, layer := range layers {
		t.Run(string(layer), func(t *testing.T) {
			t.Parallel()
			o := o
			o.Want = layer
			test(t, open(t, o))
		})
	}
}

// container makes one of exactly the layer wanted.
func container(t testing.TB, o Options) *Container {
	t.Helper()
	o = only(o)
	o.CgroupDir = os.Getenv(cgroupVariable)
	if o.Name == "" {
		o.Name = strings.ReplaceAll(t.Name(), "/", "_") + strconv.Itoa(os.Getpid())
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// open starts a slot that is closed at the end of the test.
func open(t testing.TB, o Options) *Slot {
	t.Helper()
	return start(t, container(t, o))
}

func start(t testing.TB, c *Container) *Slot {
	t.Helper()
	s, err := c.Start(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// script installs a program of sh in a directory of its own.
func script(t testing.TB, body string) string {
	t.Helper()
	return install(t, "#!/bin/sh\n"+body+"\n", 0o755)
}

func install(t testing.TB, content string, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "run.sh")
	hosttest.WriteProgram(t, name, content, mode)
	return dir
}

// output collects what a program writes to one of its streams.
type output struct {
	text    strings.Builder
	adopted bool
	done    sync.WaitGroup
}

func (o *output) Write(b []byte) (int, error) { return o.text.Write(b) }

func (o *output) Adopt(pipe int) {
	o.adopted = true
	file := os.NewFile(uintptr(pipe), "pipe")
	o.done.Go(func() {
		_, _ = io.Copy(&o.text, file)
		_ = file.Close()
	})
}

// String is for when the program has ended.
func (o *output) String() string {
	o.done.Wait()
	return o.text.String()
}

var path = "PATH=" + os.Getenv("PATH")

// run runs a script and returns what it wrote to stdout and stderr.
func run(t testing.TB, s *Slot, p Program) (Result, string) {
	t.Helper()
	out, aside := &output{}, &output{}
	p.Output = [2]Taker{out, aside}
	if p.Env == nil {
		p.Env = []string{path}
	}
	r, err := s.Run(context.Background(), p)
	text := out.String() + aside.String()
	if err != nil {
		t.Fatalf("Run: %v; it wrote %q", err, text)
	}
	return r, text
}

// background runs a program until the test says so.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
	result Result
	err    error
}

func begin(t testing.TB, s *Slot, p Program) *background {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel, done: make(chan struct{})}
	if p.Env == nil {
		p.Env = []string{path}
	}
	go func() {
		defer close(b.done)
		b.result, b.err = s.Run(ctx, p)
	}()
	t.Cleanup(func() {
		cancel()
		<-b.done
	})
	return b
}

func (b *background) wait(t testing.TB) {
	t.Helper()
	wait.Closed(t, 15*time.Second, b.done, "Run returns")
}

func itoa(n int) string { return strconv.Itoa(n) }
