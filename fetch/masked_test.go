package fetch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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
	mux.HandleFunc("/good/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "#!/bin/sh\n") })
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
	o.Dir, o.retryDelay = t.TempDir(), 1
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.Ensure(t.Context(), "good", url+"/good/run.sh?token="+canaryQuery, nil); err != nil {
		t.Fatal(err)
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
		url + "/good/run.sh?token=other-" + canaryQuery:                    "already installed",
	} {
		program := "bad"
		if want == "already installed" {
			program = "good"
		}
		var said strings.Builder
		_, err := f.Ensure(t.Context(), program, source, func(line string) { said.WriteString(line + "\n") })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
			continue
		}
		if text := said.String() + err.Error(); strings.Contains(text, canaryQuery) {
			t.Errorf("%s is shown:\n%s", source, text)
		}
	}
	// What the worker itself remembers is for its own user.
	info, err := os.Stat(filepath.Join(f.opts.Dir, "good", manifestFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("manifest: %v, %v", info, err)
	}
}
