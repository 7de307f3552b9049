package acceptance

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

// TestMain also makes the test binary a manager that dies in its handler, and
// removes the programs that were built for the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == fragileManager {
		if err := runFragile(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
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
	dir, err := os.MkdirTemp("", "tdf-acceptance-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // other users run the programs too
		return dir, err
	}
	args := append([]string{"build", "-o", dir + string(filepath.Separator)}, buildFlags...)
	for _, name := range []string{"tdf-server", "tdf-worker", "tdf-manager"} {
		args = append(args, "github.com/tdf-go/tdf/cmd/"+name)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return dir, errors.Join(fmt.Errorf("build: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}
