package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const limit = 20 * time.Second

// bench is a namespace with a configuration file, and a way to run verbs on it.
type bench struct {
	t     *testing.T
	ns    string
	file  string
	store *store.Store
	srv   *redistest.Server
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, ns: redistest.Namespace(t), srv: redistest.Shared(t)}
	b.store = worktest.Open(t, b.ns)
	b.file = writeConfig(t, b.srv.Socket(), b.ns)
	return b
}

func writeConfig(t *testing.T, host, ns string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manager.cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\n[tdf]\nnamespace=%s\n[manager]\nround_duration=0.05\n", host, ns)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// result is what a run of the command left.
type result struct {
	code     int
	out, err string
}

func (b *bench) run(args ...string) result { return b.runWith(b.t.Context(), "", args...) }

func (b *bench) runWith(ctx context.Context, stdin string, args ...string) result {
	return execute(ctx, stdin, append([]string{"--config", b.file}, args...)...)
}

func execute(ctx context.Context, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := executeTo(ctx, stdin, &out, &errs, args...)
	return result{code: code, out: out.String(), err: errs.String()}
}

func executeTo(ctx context.Context, stdin string, out, errs io.Writer, args ...string) int {
	cmd := New(Manager) //nolint:contextcheck // it gets the context from cli.Run
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(out)
	cmd.SetErr(errs)
	return cli.Run(ctx, cmd, args)
}

// started is a run of the command that goes on while the test does something.
type started struct {
	out, err *daemontest.Output
	done     chan int
}

func (b *bench) start(ctx context.Context, args ...string) *started {
	s := &started{out: &daemontest.Output{}, err: &daemontest.Output{}, done: make(chan int, 1)}
	args = append([]string{"--config", b.file}, args...)
	go func() { s.done <- executeTo(ctx, "", s.out, s.err, args...) }()
	return s
}

// ends waits for the end of the run and checks its exit code.
func (s *started) ends(t *testing.T, code int) {
	t.Helper()
	if got := wait.Receive(t, limit, s.done, "the command does not end"); got != code {
		t.Errorf("ended with %d, want %d: %s%s", got, code, s.out, s.err)
	}
}

// wrote checks all that the run has written to stdout.
func (s *started) wrote(t *testing.T, want string) {
	t.Helper()
	if out := s.out.String(); out != want {
		t.Errorf("wrote %q, want %q", out, want)
	}
}

// says waits until the run has written a text.
func (s *started) says(t *testing.T, where *daemontest.Output, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("out %q, err %q", s.out, s.err)
		}
	}()
	wait.Eventually(t, limit, func() bool { return strings.Contains(where.String(), text) }, "nobody says %q", text)
}

// must runs a verb that has to succeed, and returns its output.
func (b *bench) must(args ...string) string {
	b.t.Helper()
	r := b.run(args...)
	if r.code != 0 {
		b.t.Fatalf("%q ended with %d: %s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

// instant is a moment in JSON.
func instant(t *testing.T, value any) time.Time {
	t.Helper()
	text, _ := value.(string)
	at, err := time.Parse("2006-01-02T15:04:05.999999Z", text)
	if err != nil {
		t.Errorf("%v is no moment in UTC with microseconds", value)
	}
	return at
}

// roundOf is a round of a task in JSON.
func roundOf(t *testing.T, value any, n int) map[string]any {
	t.Helper()
	rounds, _ := value.(map[string]any)["rounds"].([]any)
	for _, r := range rounds {
		if r, _ := r.(map[string]any); r["number"] == float64(n) {
			return r
		}
	}
	t.Errorf("no round %d: %v", n, value)
	return nil
}

// value runs a verb with --json and returns the one value it prints.
func (b *bench) value(code int, args ...string) any {
	b.t.Helper()
	r := b.run(append(args, "--json")...)
	if r.code != code {
		b.t.Errorf("%q ended with %d, want %d: %s%s", args, r.code, code, r.out, r.err)
	}
	return oneValue(b.t, r.out)
}

func oneValue(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	if decoder.More() {
		t.Errorf("more than one JSON value:\n%s", text)
	}
	return v
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("text lacks %q:\n%s", part, text)
		}
	}
}

// fields are the words of a command line without quotes.
func fields(line string) []string { return strings.Fields(line) }
