package fetch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
)

// childEnv makes the test binary act as a worker: its value is a childJob.
const childEnv = "TDF_FETCH_TEST_CHILD"

type childJob struct {
	Dir, Source string
	StopAt      string // the step at which to stop for ever
	Callers     int
}

// childMain says "ready", waits for a line, fetches and says "done". At StopAt
// it says "stopped" and waits to be killed.
func childMain() int {
	var job childJob
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &job); err != nil {
		fmt.Println(err)
		return 1
	}
	o := DefaultOptions()
	o.Dir = job.Dir
	f, err := New(o)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	in := bufio.NewReader(os.Stdin)
	f.at = func(step string) {
		if step == job.StopAt {
			fmt.Println("stopped")
			_, _ = io.Copy(io.Discard, in)
		}
	}
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return 1
	}
	errs := make(chan error, job.Callers)
	for range job.Callers {
		go func() {
			_, err := f.Ensure(context.Background(), "p", job.Source, nil)
			errs <- err
		}()
	}
	for range job.Callers {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("done")
	return 0
}

// child is a worker process under test.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, job childJob) *child {
	t.Helper()
	text, err := json.Marshal(job)
	noErr(t, err)
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stderr = os.Stderr
	c.in, err = c.cmd.StdinPipe()
	noErr(t, err)
	out, err := c.cmd.StdoutPipe()
	noErr(t, err)
	c.out = bufio.NewReader(out)
	noErr(t, c.cmd.Start())
	t.Cleanup(c.kill)
	c.expect(t, "ready")
	return c
}

func (c *child) expect(t *testing.T, want string) {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if strings.TrimSpace(line) != want {
		t.Fatalf("child said %q (%v), want %q", line, err, want)
	}
}

func (c *child) start(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(c.in, "go\n")
	noErr(t, err)
}

// kill is kill -9; a second call does nothing.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// A36: once per host, however many goroutines share a fetcher.
func TestGoroutinesFetchOnce(t *testing.T) {
	t.Parallel()
	srv := newServer(t, map[string][]byte{"/p.tar.gz": allFormats(t, goodEntries())[task.FormatTarGz]})
	o := testOptions(t)
	fetchers := []*Fetcher{newFetcher(t, o), newFetcher(t, o)}
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			dir, err := ensureDir(fetchers[i%2], t.Context(), "p", srv.URL+"/p.tar.gz", nil)
			if err != nil {
				t.Error(err)
			} else if _, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := srv.gets.Load(); n != 1 {
		t.Errorf("%d GETs, want 1", n)
	}
	for _, f := range fetchers {
		if len(f.fetching) != 0 {
			t.Errorf("locks left: %v", f.fetching)
		}
	}
}

// A36: once per host, however many processes share a directory.
func TestProcessesFetchOnce(t *testing.T) {
	t.Parallel()
	srv := newServer(t, map[string][]byte{"/p.zip": allFormats(t, goodEntries())[task.FormatZip]})
	job := childJob{Dir: t.TempDir(), Source: srv.URL + "/p.zip", Callers: 5}
	var children []*child
	for range 4 {
		children = append(children, startChild(t, job))
	}
	for _, c := range children {
		c.start(t)
	}
	for _, c := range children {
		c.expect(t, "done")
	}
	if n := srv.gets.Load(); n != 1 {
		t.Errorf("%d GETs, want 1", n)
	}
}

// A36: four slots of one worker, and of two, ask for the same new program at
// once: one GET, one installation, all succeed.
func TestFourSlotsFetchOnce(t *testing.T) {
	t.Parallel()
	data := allFormats(t, goodEntries())[task.FormatTarGz]
	srv := newServer(t, map[string][]byte{"/p.tar.gz": data})
	o := testOptions(t)
	f := newFetcher(t, o)
	steps := map[string]int{} // only the holder of the lock comes to a step
	f.at = func(step string) { steps[step]++ }
	ready, errs := make(chan struct{}), make(chan error)
	for range 4 {
		go func() {
			<-ready
			_, err := f.Ensure(t.Context(), "p", srv.URL+"/p.tar.gz", nil)
			errs <- err
		}()
	}
	close(ready)
	for range 4 {
		noErr(t, <-errs)
	}
	if n := srv.gets.Load(); n != 1 || steps["installed"] != 1 {
		t.Errorf("%d GETs, steps %v, want one installation", n, steps)
	}
	two := t.TempDir()
	job := childJob{Dir: two, Source: srv.URL + "/p.tar.gz", Callers: 4}
	children := []*child{startChild(t, job), startChild(t, job)}
	for _, c := range children {
		c.start(t)
	}
	for _, c := range children {
		c.expect(t, "done")
	}
	if n := srv.gets.Load(); n != 2 {
		t.Errorf("%d GETs, want one for each directory", n)
	}
	runProgram(t, filepath.Join(two, "p", sum(data)))
}

// A worker killed at any step leaves a program absent or complete; one that
// waits for it takes over at once, and nothing stays in staging.
func TestKilledFetch(t *testing.T) {
	t.Parallel()
	for step, installed := range map[string]bool{"downloaded": false, "unpacked": false, "synced": false, "installed": true} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			data := tarBytes(t, goodEntries())
			srv := newServer(t, map[string][]byte{"/p.tar": data})
			dir := t.TempDir()
			version := filepath.Join(dir, "p", sum(data))
			victim := startChild(t, childJob{Dir: dir, Source: srv.URL + "/p.tar", Callers: 1, StopAt: step})
			victim.start(t)
			victim.expect(t, "stopped")
			waiter := startChild(t, childJob{Dir: dir, Source: srv.URL + "/p.tar", Callers: 1})
			waiter.start(t)
			_, err := os.Stat(version)
			if errors.Is(err, fs.ErrNotExist) == installed {
				t.Fatalf("while stopped at %s: %v", step, err)
			}
			victim.kill()
			waiter.expect(t, "done")
			runProgram(t, version)
			if n := srv.gets.Load(); n != 2 { // the dead one did not tell what it had seen
				t.Errorf("%d GETs, want 2", n)
			}
		})
	}
}

func TestKilledDownload(t *testing.T) {
	t.Parallel()
	data := tarBytes(t, goodEntries())
	halfway, release := make(chan struct{}), make(chan struct{})
	srv := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		_ = http.NewResponseController(w).Flush()
		close(halfway)
		<-release
	})
	o := testOptions(t)
	victim := startChild(t, childJob{Dir: o.Dir, Source: srv.URL + "/p.tar", Callers: 1})
	victim.start(t)
	<-halfway
	staged := filepath.Join(o.Dir, stageDir, "p")
	if _, err := os.Stat(staged); err != nil {
		t.Fatal(err)
	}
	// A second fetcher leaves alone what is being fetched.
	newFetcher(t, o)
	if _, err := os.Stat(staged); err != nil {
		t.Fatal("staging of a living process was removed")
	}
	victim.kill()
	close(release)
	newFetcher(t, o) // sweeps
	nothingInstalled(t, o)
}

func TestEnsureCancelled(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	srv := handle(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	o := testOptions(t)
	o.FailureBackoff = time.Hour
	f := newFetcher(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := f.Ensure(ctx, "p", srv.URL+"/run.sh", nil)
		done <- err
	}()
	<-asked
	// One who waits, in this fetcher or another, can give up as well.
	for _, waiter := range []*Fetcher{f, newFetcher(t, o)} {
		short, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := waiter.Ensure(short, "p", srv.URL+"/run.sh", nil)
		stop()
		wantErr(t, err, context.DeadlineExceeded)
	}
	cancel()
	wantErr(t, <-done, context.Canceled)
	nothingInstalled(t, o)
	if len(f.failures.known) != 0 {
		t.Error("a caller who gave up was taken for a failure of the source")
	}
}
