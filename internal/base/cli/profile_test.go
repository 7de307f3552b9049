package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// startedProfiles serves on a free port and returns the address that the log names.
func startedProfiles(t *testing.T) (url string, stop func()) {
	t.Helper()
	var log bytes.Buffer
	stop, err := serveProfiles(t.Context(), "127.0.0.1:0", slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(stop)
	t.Cleanup(stop)
	var line struct{ URL string }
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.URL == "" {
		t.Fatalf("the log names no address (%v): %s", err, &log)
	}
	return line.URL, stop
}

// askProfiles sends a request of its own connection, as from a page of the host named.
func askProfiles(ctx context.Context, url, host string) (code int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Close, req.Host = true, host
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(text), err
}

func TestServesProfiles(t *testing.T) {
	t.Parallel()
	url, stop := startedProfiles(t)
	for path, c := range map[string]struct {
		code int
		says string
	}{
		"": {200, "goroutine"}, "heap?debug=1": {200, "heap profile"}, "goroutine?debug=1": {200, "cli.Listener.Serve"},
		"cmdline": {200, "cli.test"}, "nothing": {404, "Unknown profile"}, "../../": {404, "not found"},
	} {
		code, body, err := askProfiles(t.Context(), url+path, "")
		if err != nil || code != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s%s: %d %v, want %d and %q in %.200s", url, path, code, err, c.code, c.says, body)
		}
	}
	for _, host := range []string{"evil.example:80", "10.0.0.1", "evil.example"} {
		if code, _, err := askProfiles(t.Context(), url, host); err != nil || code != http.StatusForbidden {
			t.Errorf("asked as %s: %d %v, want 403", host, code, err)
		}
	}
	if code, _, err := askProfiles(t.Context(), url, "localhost:1"); err != nil || code != http.StatusOK {
		t.Errorf("asked as localhost: %d %v", code, err)
	}
	stop()
	if code, _, err := askProfiles(t.Context(), url, ""); err == nil {
		t.Errorf("after its end it answers %d", code)
	}
}

// A profile that takes long does not keep a daemon from ending.
func TestProfilesEndAtOnce(t *testing.T) {
	t.Parallel()
	url, stop := startedProfiles(t)
	asked := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		close(asked)
		_, _, _ = askProfiles(t.Context(), url+"trace?seconds=600", "") // cut off
	})
	<-asked
	ended := make(chan struct{})
	go func() {
		stop()
		asking.Wait()
		close(ended)
	}()
	wait.Closed(t, time.Minute, ended, "it waits for its clients")
}

func TestNoProfiles(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	stop, err := serveProfiles(t.Context(), "", slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil || log.Len() > 0 {
		t.Errorf("%v, %s", err, &log)
	}
	stop()
}

func TestRefusedProfiles(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for addr, says := range map[string]string{
		taken.Addr().String(): "in use", "0.0.0.0:0": "not a loopback address", "127.0.0.1:x": "cannot be listened on",
	} {
		_, err := serveProfiles(t.Context(), addr, slog.New(slog.DiscardHandler))
		e, ok := errors.AsType[*config.Error](err)
		if !ok || !errors.Is(err, config.ErrInvalid) || e.Section != "tdf" || e.Key != "pprof" || e.Value != addr || e.Remedy == "" ||
			!strings.Contains(e.Problem, says) {
			t.Errorf("%s: %v, want %q", addr, err, says)
		}
	}
}
