package verbs

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// Redis is started anew, or loses what it had acknowledged, while tasks are opened, or right after: what was printed
// as opened may be gone. submit has done what it could, says so, and how to make sure.
func TestSubmitAcrossLives(t *testing.T) {
	t.Parallel()
	plan := planFile(t, "steps:\n  first: {program: p, input: task-1}\n  second: {program: p, input: task-2}\n")
	const lost, anew = "lost changes", "started anew or failed over"
	for name, test := range map[string]struct {
		args   string
		loses  bool
		behind int // calls of scripts that still pass after the last task was asked for
		says   []string
	}{
		"restart": {"submit --program p --class c --array 1-2 --request-key r -- task-{}", false, 0, []string{anew, "tasks 1", "--request-key r"}},
		"loss":    {"submit --program p --class c --array 1-2 -- task-{}", true, 0, []string{lost, "--request-key "}},
		"after":   {"submit --program p --class c --array 1-2 --request-key r -- task-{}", true, 1, []string{"tasks 1-2", "--request-key r"}},
		"plan":    {"plan submit --key k " + plan, false, 0, []string{anew, "tasks 1,", "--key k"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bench{t: t, ns: redistest.Namespace(t), srv: redistest.Start(t, redistest.WithAppendOnly())}
			proxy := b.srv.Proxy(t)
			host, port, err := net.SplitHostPort(proxy.Addr())
			if err != nil {
				t.Fatal(err)
			}
			b.file = writeConfig(t, b.srv.Socket(), b.ns)
			left := -1
			halt := proxy.HaltBefore(func(args []string) bool {
				if slices.Contains(args, "task-2") {
					left = test.behind
				} else if left > 0 && strings.EqualFold(args[0], "EVALSHA") {
					left--
				}
				return left == 0
			})
			run := b.start(t.Context(), append([]string{
				"--set", "redis.host=" + host, "--set", "redis.port=" + port, "--set", "manager.batch_size=1",
			}, fields(test.args)...)...)
			wait.Closed(t, limit, halt.Done(), "the second task is not opened")
			b.srv.Kill(t)
			proxy.Bury()
			b.srv.Restart(t)
			if test.loses {
				b.srv.Do(t, "DEL", b.ns+":task:1")
				b.srv.Do(t, "HSET", b.ns+":meta", "seq", "0")
			}
			proxy.Up()
			server, err := store.Dial(storetest.Where(b.srv), b.ns)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Close() })
			wait.Eventually(t, limit, func() bool {
				if _, err := server.OpenEpoch(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				return len(run.done) > 0
			}, "it does not end")
			run.ends(t, 0)
			wantText(t, run.err.String(), append(test.says, "tdf-manager verify")...)
			if n := strings.Count(run.err.String(), "warning"); n != 1 {
				t.Errorf("%d warnings: %s", n, run.err)
			}
		})
	}
}
