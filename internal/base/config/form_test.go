package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefusedFiles has files whose form is wrong.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		line       int
		sentinel   error
		want       string // in the message
	}{
		{"no delimiter", "[redis]\npassword geheim\n", 2, ErrUnreadable, "neither a section nor key=value"},
		{"no key", "[redis]\n=geheim\n", 2, ErrUnreadable, "no usable key"},
		{"quoted key", "[redis]\n\"host\"=geheim\n", 2, ErrUnreadable, "without quotes"},
		{"unclosed section", "[redis\nhost=geheim\n", 1, ErrUnreadable, "starts like a section"},
		{"text behind section", "[redis] geheim\n", 1, ErrUnreadable, "starts like a section"},
		{"key before section", "host=geheim\n" + minimal, 1, ErrUnreadable, "before the first section"},
		{"key twice", with("redis", "host=geheim"), 3, ErrUnreadable, "written twice; remove this one or the one in line 2"},
		{"section twice", minimal + "[redis]\n", 5, ErrUnreadable, "written twice"},
		{"NUL", minimal + "\x00geheim", 0, ErrUnreadable, "not a text file"},
		{"unknown section", minimal + "[servr]\nx=geheim", 5, ErrUnknown, "did you mean [server]?"},
		{"unknown odd section", minimal + "[quux]\n", 5, ErrUnknown, "known sections are redis, tdf, http, server"},
		{"unknown key", with("redis", "pasword=geheim"), 3, ErrUnknown, "did you mean password?"},
		{"unknown key with dash", with("server", "round-duration=1"), 6, ErrUnknown, "did you mean round_duration?"},
		{"unknown key in capitals", with("redis", "PORT=1"), 3, ErrUnknown, "did you mean port?"},
		{"key of another section", with("manager", "max_fails=1"), 6, ErrUnknown, "belongs to section [task_defaults]"},
		{"unknown odd key", with("tdf", "quux=geheim"), 5, ErrUnknown, "known keys are namespace"},
		{"invisible key", with("tdf", "\u202equux=geheim"), 5, ErrUnknown, `\u202e`},
		{"no redis", "[tdf]\nnamespace=t\n", 0, ErrMissing, "[redis]: this section is missing; add a line [redis]"},
		{"no tdf", "[redis]\nhost=localhost\n", 0, ErrMissing, "[tdf]: this section is missing"},
		{"no namespace", "[redis]\n[tdf]\n", 0, ErrMissing, "namespace: this key is required"},
		{"empty namespace", "[redis]\n[tdf]\nnamespace=\n", 3, ErrMissing, "namespace: this key is required"},
		{"empty file", "", 0, ErrMissing, "missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := refused(t, tc.text, ForServer)
			if e.Line != tc.line || !errors.Is(e, tc.sentinel) || !strings.Contains(e.Error(), tc.want) {
				t.Errorf("got line %d: %v; want line %d, %v, %q", e.Line, e, tc.line, tc.sentinel, tc.want)
			}
			if strings.Contains(e.Error(), "geheim") {
				t.Errorf("shows what may be a secret: %v", e)
			}
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large.cfg")
	if err := os.WriteFile(large, []byte(strings.Repeat("#\n", maxFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none.cfg"), dir, large} {
		_, err := Load(path, ForServer, WithEnviron(nil))
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, ErrUnreadable) || e.File != path || e.Remedy == "" || e.ExitCode() != 2 {
			t.Errorf("Load(%s): %v", path, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.cfg"), ForServer); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("cause is lost: %v", err)
	}
}

// TestSectionsOfOthers: one file can serve all programs, and is checked as a whole.
func TestSectionsOfOthers(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, with("worker", "output_limit=2MiB"), ForServer)
	if f.Worker.OutputLimit != 2<<20 {
		t.Errorf("output_limit = %d", f.Worker.OutputLimit)
	}
	refused(t, with("worker", "output_limit=x"), ForServer)
	refused(t, with("worker", "outputlimit=1"), ForServer)
	mustLoad(t, with("worker", "netrc_file=/does/not/exist"), ForServer)
}
