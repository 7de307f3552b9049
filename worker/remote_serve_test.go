package worker

import (
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// ServeSite serves a space over HTTP and makes a token for a worker. A package sets it that may know of package httpapi.
var ServeSite func(tb testing.TB, sp *storetest.Space, name string) (url, token string)

// testsOverHTTP begins the names of tests whose workers reach their site over HTTP.
const testsOverHTTP = "TestOverHTTP/"

// backend is how a worker of a test reaches its site.
func (s *site) backend(tb testing.TB, name string, direct Backend) Backend {
	tb.Helper()
	if _, usual := direct.(*store.Store); !usual || !strings.HasPrefix(tb.Name(), testsOverHTTP) {
		return direct
	}
	url, token := ServeSite(tb, s.Space, name)
	r, err := Remote(url, name, token)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
