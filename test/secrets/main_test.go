package secrets

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/redistest"
)

// TestMain removes the programs that were built for the tests.
func TestMain(m *testing.M) {
	redistest.Main(m, goleak.Cleanup(func(code int) {
		if built.dir != "" {
			_ = os.RemoveAll(built.dir)
		}
		os.Exit(code)
	}))
}

// built are the programs under test, built on first use.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// program returns the path of tdf-server, tdf-worker or tdf-manager.
func program(tb testing.TB, name string) string {
	tb.Helper()
	built.once.Do(func() { built.dir, built.err = build() })
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return filepath.Join(built.dir, name)
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "tdf-secrets-")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, name := range []string{"tdf-server", "tdf-worker", "tdf-manager"} {
		args = append(args, "github.com/tdf-go/tdf/cmd/"+name)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return dir, errors.Join(fmt.Errorf("build: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}
