package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// A series is made, shown, changed, run and removed; what cannot be is named.
func TestSeries(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	nightly := `{"key":"night/ly","task":{"source":"command:backup","variables":{"TOKEN":"secret"},"end_before":"+2h"},` +
		`"set":{"cron":"0 3 * * *","zone":"Europe/Berlin","overlap":"queue"}`
	for _, tt := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{http.MethodGet, "/series", "", http.StatusOK, "[]"},
		{http.MethodPost, "/series", nightly + `,"dry_run":true}`, http.StatusCreated, `"dry_run": true`},
		{http.MethodGet, "/series/night%2Fly", "", http.StatusNotFound, "no such record"},
		{http.MethodPost, "/series", nightly + "}", http.StatusCreated, `"TOKEN": "***"`},
		{http.MethodPost, "/series", nightly + "}", http.StatusConflict, "exists"},
		{http.MethodGet, "/series/night%2Fly", "", http.StatusOK, `"overlap": "queue"`},
		{http.MethodPost, "/series", `{"key":"k","task":{"source":"file:x"},"set":{"every":"1m"}}`, http.StatusUnprocessableEntity, "blob:sha256"},
		{http.MethodPost, "/series", `{"key":"k","task":{"sorce":"x"},"set":{"every":"1m"}}`, http.StatusUnprocessableEntity, "source"},
		{http.MethodPost, "/series", `{"key":"k","task":{"program":"p"},"set":{}}`, http.StatusUnprocessableEntity, "cron"},
		{http.MethodPost, "/series", `{"key":"k","task":{"program":"p","queue":"none"},"set":{"every":"60"}}`, http.StatusNotFound, "queue"},
		{http.MethodPost, "/series", `{"key":"every","task":{"program":"p"},"set":{"every":"60"}}`, http.StatusCreated, `"every": 60`},
		{http.MethodPatch, "/series/every", `{"set":{"every":"90","task_input":"1 2"}}`, http.StatusOK, `"changed": {`},
		{http.MethodPost, "/series", `{"key":"x","task":{},"set":{"every":"60","task_program":"p"},"dry_run":true}`, http.StatusCreated, `"program": "p"`},
		{http.MethodPatch, "/series/every", `{"set":{"evry":"90"}}`, http.StatusUnprocessableEntity, "every"},
		{http.MethodPost, "/series/every/pause", "", http.StatusOK, `"paused": true`},
		{http.MethodPost, "/series/every/run?dry_run=true", "", http.StatusOK, `"dry_run": true`},
		{http.MethodPost, "/series/every/run", "", http.StatusOK, `"task": 1`},
		{http.MethodPost, "/series/every/resume", "", http.StatusOK, `"paused": false`},
		{http.MethodPost, "/series/none/run", "", http.StatusNotFound, "no such record"},
		{http.MethodDelete, "/series/every?dry_run=true", "", http.StatusOK, `"dry_run": true`},
		{http.MethodDelete, "/series/every", "", http.StatusOK, `"every"`},
		{http.MethodDelete, "/series/every", "", http.StatusNotFound, "no such record"},
	} {
		w := c.do(t, tt.method, tt.path, tt.body)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s %s %s: %d %s, want %d and %q", tt.method, tt.path, tt.body, w.Code, w.Body, tt.code, tt.says)
		}
	}
	got, err := c.m.Task(t.Context(), 1)
	if err != nil || got.Input != "1 2" || got.Meta["series"] != "every" {
		t.Errorf("%+v, error %v", got, err)
	}
}

// A list of series comes in pages.
func TestSeriesPages(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	for _, key := range []string{"b", "a", "c&d"} {
		c.do(t, http.MethodPost, "/series", `{"key":"`+key+`","task":{"program":"p"},"set":{"every":"1h"}}`)
	}
	var keys []string
	for path := "/series?limit=1"; path != ""; {
		w := c.do(t, http.MethodGet, path, "")
		var page []struct{ Key string }
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		for _, one := range page {
			keys = append(keys, one.Key)
		}
		link, _, more := strings.Cut(strings.TrimPrefix(w.Header().Get("Link"), "<"+root), ">")
		if path = link; !more {
			break
		}
	}
	if strings.Join(keys, " ") != "a b c&d" {
		t.Errorf("keys %q", keys)
	}
}
