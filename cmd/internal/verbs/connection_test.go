package verbs

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// A command that waits for nothing makes one connection.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, ns: redistest.Namespace(t), srv: redistest.Start(t)}
	b.file = writeConfig(t, b.srv.Socket(), b.ns)
	b.must("submit", "--program", "p", "--source", "rsync:/s/run.sh", "--", "1")
	file := planFile(t, "steps:\n  a: {program: p, source: rsync:/s/run.sh}\n")
	for _, args := range []string{
		"submit --program p --source s -- 2", "ls", "ls last", "ls -o wide", "show last", "why last", "why --queue default", "logs last",
		"history last", "stats", "hold last", "release last", "cancel last --dry-run", "retry all --dry-run", "export",
		"queue ls", "queue show default", "queue add q", "queue rm q", "node ls", "worker ls --all", "top --once",
		"plan submit " + file, "plan ls", "plan show last", "plan show last --json", "plan hold last", "plan cancel last",
		"flush --dry-run", "verify",
	} {
		before := connections(t, b.srv)
		r := b.run(fields(args)...)
		if n := connections(t, b.srv) - before - 1; n != 1 { // INFO has one too
			t.Errorf("%s made %d connections, want 1; it ended with %d: %s%s", args, n, r.code, r.out, r.err)
		}
	}
}

// connections is how many a Redis has taken since its start.
func connections(t *testing.T, srv *redistest.Server) int {
	t.Helper()
	found := regexp.MustCompile(`total_connections_received:(\d+)`).FindStringSubmatch(fmt.Sprint(srv.Do(t, "INFO", "stats")))
	if found == nil {
		t.Fatal("Redis does not count connections")
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
