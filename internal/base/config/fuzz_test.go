package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad: no file makes Load panic; an error is typed and never shows the
// text after "password"; what loads is shown in a form that loads again.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{minimal, seedForm, with("redis", "password=`x"), with("redis", `password="""x`), "[a", "=", "[]\n", "\"\"\"a\"\"\"=b", "-=1", "[DEFAULT]\nx=1"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "fuzz.cfg")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(path, ForServer, WithEnviron(nil))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Problem == "" || e.Remedy == "" {
				t.Fatalf("untyped or empty error: %v", err)
			}
			return
		}
		var b strings.Builder
		if err := loaded.Print(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := load(t, b.String(), ForServer); err != nil {
			t.Fatalf("Print does not load again: %v\n%s", err, b.String())
		}
	})
}

// FuzzPassword: every printable password survives the file.
func FuzzPassword(f *testing.F) {
	for _, seed := range []string{"ab#cd;ef", "`", `"""`, `"`, "'a'", "%(x)s", "a\\", "[x]", "=", "ä"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, password string) {
		if password != strings.TrimSpace(password) || printable(password) != nil || strings.ContainsRune(password, 0) || password == "None" {
			t.Skip("cannot stand in a file")
		}
		got := mustLoad(t, with("redis", "password="+password), ForServer)
		if got.Redis.Password != password {
			t.Errorf("%q became %q", password, got.Redis.Password)
		}
	})
}
