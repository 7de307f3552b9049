package redistest

import (
	"crypto/rand"
	"strings"
	"testing"
)

// Namespace returns a namespace nobody else uses and logs it, so that a failed
// test names the keys it worked on.
func Namespace(tb testing.TB) string {
	tb.Helper()
	ns := "t" + strings.ToLower(rand.Text()[:12])
	tb.Logf("namespace %s", ns)
	return ns
}
