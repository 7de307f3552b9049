package crewtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// Place is a namespace on the shared Redis of the test binary.
type Place struct {
	// Host is the path of the server's unix socket.
	Host string
	// Namespace is used by this test alone.
	Namespace string
}

// NewPlace returns a namespace nobody else uses; see [redistest.Shared].
func NewPlace(tb testing.TB) Place {
	tb.Helper()
	return Place{Host: redistest.Shared(tb).Socket(), Namespace: redistest.Namespace(tb)}
}

var (
	hostLine      = regexp.MustCompile(`(?m)^host=.*$`)
	namespaceLine = regexp.MustCompile(`(?m)^namespace=.*$`)
)

// Config copies a .cfg file, with host and namespace replaced, and returns the
// copy's name.
func (p Place) Config(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if !hostLine.Match(text) || !namespaceLine.Match(text) {
		tb.Fatalf("%s: no line starts with host= or namespace=", file)
	}
	text = hostLine.ReplaceAllLiteral(text, fmt.Append(nil, "host=", p.Host))
	text = namespaceLine.ReplaceAllLiteral(text, fmt.Append(nil, "namespace=", p.Namespace))
	out := filepath.Join(tb.TempDir(), filepath.Base(file))
	if err := os.WriteFile(out, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return out
}
