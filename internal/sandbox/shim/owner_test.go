package shim

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// AsOwner opens what the program's user may open and nothing else, while the rest of
// the process keeps its rights.
func TestAsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have several users")
	}
	c := &Container{who: &identity{UID: 65534, GID: 65534, Groups: []int{65534}}}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret, open := filepath.Join(dir, "secret"), filepath.Join(dir, "open")
	for name, mode := range map[string]os.FileMode{secret: 0o600, open: 0o644} {
		if err := os.WriteFile(name, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) error { _, err := os.ReadFile(name); return err }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := c.AsOwner(func() error { return read(secret) }); !errors.Is(err, os.ErrPermission) {
				t.Errorf("the secret: %v, want that it cannot be read", err)
			}
			if err := c.AsOwner(func() error { return read(open) }); err != nil {
				t.Error(err)
			}
			if err := read(secret); err != nil {
				t.Errorf("root has lost its rights: %v", err)
			}
		})
	}
	all.Wait()
	if err := c.AsOwner(func() error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) }); !errors.Is(err, syscall.EACCES) {
		t.Errorf("%v, want that it cannot be written", err)
	}
	failure := errors.New("mine")
	if err := (&Container{}).AsOwner(func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("without another user: %v", err)
	}
}
