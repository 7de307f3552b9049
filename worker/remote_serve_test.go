package worker

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// ServeSite serves a space over HTTP and makes a token for a worker; a package that may know of package httpapi sets it.
var ServeSite func(tb testing.TB, sp *storetest.Space, name string) (url, token string)

// overHTTP begins the names of tests whose workers reach their site over HTTP.
const overHTTPTests = "TestOverHTTP/"

// backend is how workers of a test reach their site.
func (s *site) backend(tb testing.TB, direct Backend) Backend {
	tb.Helper()
	if os.Getenv("XHTTP") == "" && !strings.HasPrefix(tb.Name(), overHTTPTests) {
		return direct
	}
	url, token := ServeSite(tb, s.Space, "w")
	r, err := Remote(url, "w", token)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
