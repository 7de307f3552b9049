package fetch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// canaryQuery is the value of a parameter of a source, which is shown nowhere.
const canaryQuery = "Canary-9d4e6f"

// hidingSite fails in the ways of the web.
func hidingSite(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, to := range map[string]string{
		"/moved/": "/missing/run.sh?again=" + canaryQuery, "/elsewhere/": "ftp://h/run.sh?again=" + canaryQuery,
		"/unreadable/": "http://[h/run.sh?again=" + canaryQuery, "/login/": "http://user:" + canaryQuery + "@127.0.0.1/run.sh",
		"/refused/": "http://127.0.0.1:1/run.sh?again=" + canaryQuery,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		})
	}
	var asked atomic.Bool
	mux.HandleFunc("/once/", func(w http.ResponseWriter, r *http.Request) {
		if asked.Swap(true) {
			http.Redirect(w, r, "ftp://h/run.sh?again="+canaryQuery, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "#!/bin/sh\n")
	})
	mux.HandleFunc("/damaged/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no archive") })
	mux.HandleFunc("/cut/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "#!/bin/sh")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// Whatever becomes of a download, neither an error nor a line of the log has what
// stood in the query or the login of a source or of a redirect.
func TestParametersAreMasked(t *testing.T) {
	t.Parallel()
	url := hidingSite(t)
	o := DefaultOptions()
	o.Dir, o.retryDelay, o.Revalidate = t.TempDir(), 1, 0
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var told strings.Builder
	for range 2 {
		told.Reset()
		if _, err := f.Ensure(t.Context(), "good", url+"/once/run.sh?token="+canaryQuery, func(line string) { told.WriteString(line) }); err != nil {
			t.Fatal(err)
		}
	}
	if text := told.String(); !strings.Contains(text, "going on with sha256 ") || strings.Contains(text, canaryQuery) {
		t.Errorf("of a source that cannot be asked it says %q", text)
	}
	for source, want := range map[string]string{
		url + "/missing/p.tgz?sig=" + canaryQuery:                          "404",
		url + "/moved/run.sh?key=" + canaryQuery:                           "404",
		url + "/elsewhere/run.sh?" + canaryQuery:                           "redirect refused",
		url + "/unreadable/run.sh?a=1&access_token=" + canaryQuery:         "Location",
		url + "/login/run.sh?x=y'" + canaryQuery:                           "redirect refused",
		url + "/refused/run.sh?x=" + canaryQuery:                           "refused",
		url + "/cut/run.sh?x=" + canaryQuery:                               "truncated",
		url + "/damaged/p.tgz?x=" + canaryQuery:                            "unpacking p.tgz",
		url + "/damaged/get?name=" + canaryQuery + ".tgz":                  "unpacking the file",
		url + "/damaged/p.tgz?x=" + canaryQuery + "#sha256=" + hash64:      "checksum",
		url + "/damaged/get?name=" + canaryQuery + ".tgz#sha256=" + hash64: "checksum",
		url + "/p.tgz#token=" + canaryQuery:                                "sha256=",
		url + "/p.unknown?x=" + canaryQuery:                                "invalid type",
		"http://127.0.0.1:1/p.tgz?x=" + canaryQuery:                        "refused",
		"ftp://127.0.0.1/p.tgz?x=" + canaryQuery:                           "invalid source",
		"http://user:" + canaryQuery + "@127.0.0.1/p.tgz":                  "netrc",
		"p.tgz?x=" + canaryQuery:                                           "invalid source",
		"rsync://127.0.0.1:1/m/p.tgz?x=" + canaryQuery:                     "invalid source",
	} {
		var said strings.Builder
		_, err := f.Ensure(t.Context(), "bad", source, func(line string) { said.WriteString(line + "\n") })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
			continue
		}
		if text := said.String() + err.Error(); strings.Contains(text, canaryQuery) {
			t.Errorf("%s is shown:\n%s", source, text)
		}
	}
	// What the worker itself remembers is for its own user.
	for _, pattern := range []string{filepath.Join("good", "*", manifestFile), filepath.Join(seenDir, "good.*")} {
		found, err := filepath.Glob(filepath.Join(f.opts.Dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", found[0], info, err)
		}
	}
}
