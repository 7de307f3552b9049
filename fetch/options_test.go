package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestOptionsAreValidated(t *testing.T) {
	t.Parallel()
	notPEM := write(t, filepath.Join(t.TempDir(), "ca"), []byte("x"), 0o644)
	for _, c := range []struct {
		field string
		set   func(*Options)
	}{
		{"Dir", func(o *Options) { o.Dir = "" }},
		{"MaxBytes", func(o *Options) { o.MaxBytes = -1 }},
		{"MaxFileBytes", func(o *Options) { o.MaxFileBytes = 0 }},
		{"MaxEntries", func(o *Options) { o.MaxEntries = 0 }},
		{"MaxRedirects", func(o *Options) { o.MaxRedirects = -1 }},
		{"Timeout", func(o *Options) { o.Timeout = 0 }},
		{"FailureBackoff", func(o *Options) { o.FailureBackoff = -1 }},
		{"NetrcFile", func(o *Options) { o.NetrcFile = "/none" }},
		{"CAFile", func(o *Options) { o.CAFile = "/none" }},
		{"CAFile", func(o *Options) { o.CAFile = notPEM }},
		{"RsyncPath", func(o *Options) { o.RsyncPath = "" }},
		{"SSHExtra", func(o *Options) { o.SSHExtra = []string{`-o"ProxyCommand`} }},
		{"SSHExtra", func(o *Options) { o.SSHExtra = []string{"-o ProxyCommand=x"} }},
		{"SSHExtra", func(o *Options) { o.SSHExtra = []string{""} }},
	} {
		o := testOptions(t)
		c.set(&o)
		_, err := New(o)
		name := setting(c.field)
		if name == "" {
			name = "fetch option " + c.field
		}
		if err == nil || !strings.HasPrefix(err.Error(), name+": bad value ") || strings.HasSuffix(err.Error(), ": ") {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestNewNeedsADirectory(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Dir = write(t, filepath.Join(t.TempDir(), "file"), nil, 0o644)
	if _, err := New(o); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// New removes what dead processes left, and nothing else.
func TestNewSweeps(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	write(t, filepath.Join(o.Dir, stageDir, "p", stagedTree, "run.sh"), nil, 0o755)
	write(t, filepath.Join(o.Dir, stageDir, "p", stagedFile), nil, 0o600)
	noErr(t, os.Symlink("/etc", filepath.Join(o.Dir, stageDir, "p", "link")))
	kept := write(t, filepath.Join(o.Dir, "hand", "run.sh"), []byte(script), 0o755)
	newFetcher(t, o)
	if _, err := os.Stat(filepath.Join(o.Dir, stageDir, "p")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, name := range []string{kept, "/etc/passwd"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// Every setting that an error names is a key of the configuration.
func TestSettingsExist(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile(filepath.Join("..", "docs", "CONFIGURATION.md"))
	noErr(t, err)
	_, worker, _ := strings.Cut(string(reference), "\n## [worker]\n")
	worker, _, _ = strings.Cut(worker, "\n## ")
	for field, key := range settings {
		if _, ok := reflect.TypeFor[Options]().FieldByName(field); !ok || !strings.Contains(worker, "\n### `"+key+"`\n") {
			t.Errorf("%s: no such field, or no key %s", field, key)
		}
	}
	for _, l := range []limit{limitDownload, limitBytes, limitFileBytes, limitEntries, limitDepth, limitRatio} {
		text := (&limitError{of: l, most: 7}).Error()
		if !strings.Contains(text, " 7 ") || strings.Contains(text, "Max") || strings.Contains(text, "raise  if") {
			t.Error(text)
		}
	}
}
