package secrets

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// inQuery is the value of a parameter of a source, which the worker needs and
// nobody is shown.
const inQuery = "Canary-9d4e6f"

// site serves programs that need a token, and fails in the ways of the web.
func site(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/good/", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.RawQuery, inQuery) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, "#!/bin/sh\nenv\ncat run.sh\necho ran\n")
	})
	mux.HandleFunc("/forbidden/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	mux.HandleFunc("/moved/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://[h/run.sh?again="+inQuery) // net/http quotes it
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/cut/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "#!/bin/sh")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// A token in the query of a source is in the task, which needs it, and in the
// worker's own record of the program; it is shown nowhere, whatever becomes of
// the download.
func TestTokensInSources(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	r := newRig(t, srv, func(string) string { return "host=" + srv.Socket() })
	r.crew()
	url := site(t)
	good := r.submitFrom("good", url+"/good/run.sh?token="+inQuery)
	r.becomes(good, "succeeded")
	missing := url + "/missing/p.tgz?sig=" + inQuery
	refused := r.verb("manager", "submit", "--program", "bad", "--source", missing)
	if refused.code != 2 || !strings.Contains(refused.err, "/missing/p.tgz?sig=***") {
		t.Errorf("a source that is not there: %+v", refused)
	}
	ids := []string{good, r.openFrom("bad", missing)}
	for i, source := range []string{
		url + "/forbidden/run.sh?X-Amz-Signature=" + inQuery, url + "/moved/run.sh?key=" + inQuery,
		url + "/cut/run.sh?access_token=" + inQuery,
	} {
		ids = append(ids, r.submitFrom(fmt.Sprint("bad", i), source))
	}
	ids = append(ids, r.openFrom("ftp", "ftp://127.0.0.1/p.tgz?x="+inQuery))
	for _, id := range ids[1:] {
		r.becomes(id, "failed")
	}
	other := r.submitFrom("good", url+"/good/run.sh?token=other-"+inQuery)
	r.becomes(other, "succeeded")
	ids = append(ids, other)
	said := r.saidOf(ids)
	said["a refusal"] = refused.out + refused.err
	for _, d := range r.daemons {
		said[filepath.Base(d.Path)] = d.Log.String()
	}
	maps.Copy(said, r.values())
	for _, id := range ids {
		source, _ := r.srv.Do(t, "HGET", r.ns+":task:"+id, "source").(string)
		key := "key " + r.ns + ":task:" + id
		said[key] = strings.Replace(said[key], source, "", 1)
	}
	for name, text := range said {
		if i := strings.Index(text, inQuery); i >= 0 {
			t.Errorf("%s has the token: ...%q", name, text[max(0, i-90):min(len(text), i+20)])
		}
	}
	if !strings.Contains(said["show "+good], "/good/run.sh?token=***") || !strings.Contains(said["logs "+good], "ran") {
		t.Errorf("the good source is shown as %q", said["show "+good])
	}
	for _, pattern := range []string{"good/*/.tdf-manifest.json", ".tdf/seen/good.*"} {
		found, err := filepath.Glob(filepath.Join(r.dir, "programs", pattern))
		if err != nil || len(found) == 0 && strings.HasPrefix(pattern, "good") {
			t.Errorf("%s: %v, %v", pattern, found, err)
		}
		for _, name := range found {
			r.manifest(name)
		}
	}
}

// saidOf is all that can be asked about tasks.
func (r *rig) saidOf(ids []string) map[string]string {
	r.t.Helper()
	said := map[string]string{}
	ask := func(args ...string) {
		got := r.verb("manager", args...)
		said[strings.Join(args, " ")] = got.out + got.err
	}
	for _, args := range [][]string{
		{"ls"}, {"ls", "--json"}, {"stats"}, {"verify"}, {"doctor"}, {"top", "--once"}, {"worker", "show", "w"},
		{"why", ids[1]}, {"history", ids[1]}, {"logs", ids[1], "--stderr"}, {"wait", ids[1]}, {"logs", ids[0]},
	} {
		ask(args...)
	}
	for _, id := range ids {
		ask("show", id)
		ask("show", id, "--json")
	}
	return said
}

// manifest looks at what a worker remembers of a source: only its own user may read it.
func (r *rig) manifest(file string) {
	r.t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		r.t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		r.t.Errorf("%s has mode %v", file, info.Mode())
	}
}
