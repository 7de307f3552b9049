package acceptance

import (
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

var profileURL = regexp.MustCompile(`"url":"(http://127\.0\.0\.1:\d+/debug/pprof/)"`)

// Each daemon serves profiles where the configuration says so, and no longer than it lives; without that none does, and an
// address that others could reach is refused.
func TestProfiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t).Says(t, "initializing")
	w.environ = append(w.environ, "TDF_TDF_PPROF=127.0.0.1:0")
	var urls []string
	for name, d := range map[string]*daemon{"tdf-server": w.server(t), "tdf-worker": w.worker(t, "w"), "tdf-manager": w.archiver(t)} {
		d.Says(t, "profiles are served")
		url := profileURL.FindStringSubmatch(d.Log.String())
		if url == nil {
			t.Fatalf("%s does not say where: %s", name, d.Log)
		}
		if text := get(t, url[1]+"cmdline"); !strings.Contains(text, name) {
			t.Errorf("%s answers %q", name, text)
		}
		urls = append(urls, url[1])
	}
	if first := w.daemons[0]; strings.Contains(first.Log.String(), "pprof") {
		t.Errorf("profiles are served without having been asked for: %s", first.Log)
	}
	wait.Eventually(t, patience, func() bool {
		return w.Raw.HLen(t.Context(), w.Key("managers")).Val() == 1 && w.Raw.ZCard(t.Context(), w.Key("lease")).Val() == 1
	}, "not all are at work")
	daemontest.Stop(t, w.daemons)
	w.daemons = nil
	for _, url := range urls {
		if text := get(t, url); text != "" {
			t.Errorf("%s answers after the end of its daemon", url)
		}
	}
	for name, args := range map[string][]string{
		"tdf-server": {w.cfg}, "tdf-worker": {"w", w.cfg}, "tdf-manager": {"--config", w.cfg, "run"},
	} {
		_, problem, code := daemontest.Run(t, exec.Command(program(t, name), append(args, "--set", "tdf.pprof=0.0.0.0:6060")...))
		const says = `[tdf] pprof = "0.0.0.0:6060": not a loopback address: others than this host could connect; write 127.0.0.1`
		if code != 2 || !strings.Contains(problem, says) {
			t.Errorf("%s ends with %d and says %s", name, code, problem)
		}
	}
}

// get is what an address answers, empty if nobody is there.
func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
