package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// minimal is the shortest file that loads.
const minimal = "[redis]\nhost=localhost\n[tdf]\nnamespace=t\n"

// write puts a configuration into a file of the test's own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.cfg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads a text with an empty environment.
func load(t *testing.T, text string, need Kind, opts ...Option) (*File, error) {
	t.Helper()
	return Load(write(t, text), need, append([]Option{WithEnviron(nil)}, opts...)...)
}

// mustLoad is load for texts that are right.
func mustLoad(t *testing.T, text string, need Kind, opts ...Option) *File {
	t.Helper()
	f, err := load(t, text, need, opts...)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return f
}

// refused loads a text that is wrong and returns the first error in it.
func refused(t *testing.T, text string, need Kind, opts ...Option) *Error {
	t.Helper()
	f, err := load(t, text, need, opts...)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("Load = %v, %v; want an *Error", f, err)
	}
	return e
}

// with adds a line to a section of the minimal file.
func with(section, line string) string {
	switch section {
	case "redis":
		return strings.Replace(minimal, "[tdf]", line+"\n[tdf]", 1)
	case "tdf":
		return minimal + line + "\n"
	default:
		return minimal + "[" + section + "]\n" + line + "\n"
	}
}

func shown(t *testing.T, f *File) string {
	t.Helper()
	var b strings.Builder
	if err := f.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
