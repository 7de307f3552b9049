package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/cli"
	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/worktest"
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
	cmd := newCommand() //nolint:contextcheck // it gets the context from cli.Run
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	code := cli.Run(ctx, cmd, args)
	return result{code: code, out: out.String(), err: errs.String()}
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
