package server

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
)

// logs gathers what a server logs.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newLogger writes all there is to say, for people and for tests.
func newLogger(l *logs) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newServer makes a server on the space; it does not run.
func newServer(t *testing.T, sp *storetest.Space, change ...func(*options)) (*Server, *logs) {
	t.Helper()
	l := &logs{}
	opt := fromConfig(config.Defaults().Server)
	opt.Name, opt.store, opt.Logger = "server", sp.Dial(t), newLogger(l)
	for _, f := range change {
		f(&opt)
	}
	s, err := assemble(opt)
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

// start runs a server until the test ends.
func start(t *testing.T, sp *storetest.Space, change ...func(*options)) *logs {
	t.Helper()
	_, l := launch(t, sp, change...)
	return l
}

// launch is start for tests that look into the server.
func launch(t *testing.T, sp *storetest.Space, change ...func(*options)) (*Server, *logs) {
	t.Helper()
	s, l := newServer(t, sp, change...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := wait.Receive(t, 5*time.Second, done, "server does not stop"); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	return s, l
}

// pass makes one pass of a server that does not run.
func pass(t *testing.T, s *Server) int {
	t.Helper()
	n, _, err := s.pass(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// setting makes a change of the options out of settings of [server], each key=value.
func setting(tb testing.TB, settings ...string) func(*options) {
	tb.Helper()
	for i, s := range settings {
		settings[i] = "server." + s
	}
	change := storetest.Setting(tb, func(c *config.File) Settings { return Settings(c.Server) }, settings...)
	return func(o *options) { change(&o.Settings) }
}

func fast(o *options) { o.RepairInterval = 200 * time.Millisecond }

func checkState(t *testing.T, sp *storetest.Space, id int64, want statemachine.State) {
	t.Helper()
	task := sp.Task(t, id)
	if task.Fields["state"] != string(want) {
		t.Errorf("task %d: state = %s, want %s", id, task.Fields["state"], want)
	}
	if in := sp.Sets(t, id); !slices.Equal(in, []statemachine.State{want}) {
		t.Errorf("task %d: listed in %v, want %s only", id, in, want)
	}
}

func checkFields(t *testing.T, sp *storetest.Space, id int64, want map[string]string) {
	t.Helper()
	task := sp.Task(t, id)
	for field, value := range want {
		got, ok := task.Fields[field]
		switch {
		case value == "*" && !ok, value == "-" && ok:
			t.Errorf("task %d: field %s = %q (there: %v), want %s", id, field, got, ok, value)
		case value != "*" && value != "-" && got != value:
			t.Errorf("task %d: field %s = %q, want %q", id, field, got, value)
		}
	}
}

func checkLog(t *testing.T, sp *storetest.Space, id int64, edges ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(sp.Task(t, id).Fields["log"]) {
		_, edge, _ := strings.Cut(strings.TrimSpace(line), ": ")
		got = append(got, edge)
	}
	if !slices.Equal(got, edges) {
		t.Errorf("task %d: log edges %v, want %v", id, got, edges)
	}
}

// fromConfig are the options that the section [server] asks for.
func fromConfig(c config.Server) options { return options{Options: Options{Settings: Settings(c)}} }

func withDefaults(name string, st backend) options {
	o := fromConfig(config.Defaults().Server)
	o.Name, o.store = name, st
	return o
}
