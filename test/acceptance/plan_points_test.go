package acceptance

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// point is a call of a script at which a program is killed.
type point struct {
	name, script string
	// event is what a move brings about, step the task that it is about: empty and none for any.
	event string
	step  int
	nth   int // of the calls that fit
	// again is what is noted twice if the program is killed before: a round that has come
	// to its end is run again if nothing has kept that.
	again string
}

// at reports whether a script is that of the point. A turn without a claim, as a slot that is idle leaves it, is a move.
func (p *point) at(script string) bool {
	return script == p.script || p.script == "turn" && script == "move"
}

// none is no step.
const none = -1

// The calls of scripts that know plans, in the order of a plan's life. That no script is
// missing is shown by the run without a kill.
var (
	pointsOfAdding = []point{
		{"new plan", "plan", "", none, 1, ""},
		{"first portion", "open", "", none, 1, ""},
		{"second portion", "open", "", none, 2, ""},
		{"ready", "steer", "", none, 1, ""},
	}
	pointsOfServing = []point{
		{"looking for what is on no list", "redrain", "", none, 1, ""},
		{"opening the first", "move", "unblock", stepA, 1, ""},
		{"settling a provider", "move", "settle", stepA, 1, ""},
		{"first page of its notice", "notify", "", stepA, 1, ""},
		{"second page of its notice", "notify", "", stepA, 2, ""},
		{"reading what is free", "freed", "", none, 3, ""},
		{"opening what is free", "move", "unblock", stepB, 1, ""},
		{"notice of one of two", "notify", "", stepB, 1, ""},
		{"opening what waited for two", "move", "unblock", stepD, 1, ""},
		{"settling the last", "move", "settle", stepE, 1, ""},
	}
	pointsOfWorking = []point{
		{"claim", "turn", "", none, 1, ""},
		{"reading arguments", "results", "", none, 1, ""},
		{"report", "turn", "report", stepB, 1, "B:A"},
	}
)

// roles are the programs that take part in a plan.
var roles = map[string]role{
	"manager": {
		points: pointsOfAdding, builds: true,
		beside: func(t *testing.T, w *world) { t.Helper(); w.server(t); w.worker(t, "w", "slots=2") },
		command: func(t *testing.T, r *rig, plan *recipe) *exec.Cmd {
			t.Helper()
			return r.builder(t, plan)
		},
	},
	"server": {
		points: pointsOfServing,
		beside: func(t *testing.T, w *world) { t.Helper(); w.worker(t, "w", "slots=2") },
		command: func(t *testing.T, r *rig, _ *recipe) *exec.Cmd {
			t.Helper()
			return exec.Command(program(t, "tdf-server"), "server", r.cfg)
		},
	},
	"worker": {
		points: pointsOfWorking,
		beside: func(t *testing.T, w *world) { t.Helper(); w.server(t) },
		command: func(t *testing.T, r *rig, _ *recipe) *exec.Cmd {
			t.Helper()
			return exec.Command(program(t, "tdf-worker"), r.workerArgs("w", "slots=1")...)
		},
	},
}

// match fits the call of the point, in the plan whose tasks come after that id.
func (r *rig) match(p point, last int64) redistest.Match {
	seen := 0
	return func(args []string) bool {
		if !p.at(r.called(args)) || p.event != "" && !slices.Contains(args, p.event) {
			return false
		}
		if p.step != none && !slices.Contains(args, r.Key(fmt.Sprint("task:", last+1+int64(p.step)))) {
			return false
		}
		seen++
		return seen == p.nth
	}
}

// called is the script that a command calls, empty if it is not one that knows plans. Results are read without one where no
// task was retried.
func (r *rig) called(args []string) string {
	if strings.EqualFold(args[0], "HMGET") && args[len(args)-1] == "0:output_bytes" {
		return "results"
	}
	if len(args) < 2 || !strings.EqualFold(args[0], "EVALSHA") {
		return ""
	}
	return r.scripts[args[1]]
}

// planScripts are the names of the scripts that know plans, by what Redis calls them: of
// those that a store sends to a Redis that has none yet.
func planScripts(t *testing.T, srv *redistest.Server) map[string]string {
	t.Helper()
	names := map[string]string{}
	title := regexp.MustCompile(`\nlocal function script\(dry\)\n(?:redis.*\n)?-- (\w+) `)
	about := regexp.MustCompile(`\bplans?\b`)
	proxy := srv.Proxy(t)
	proxy.HaltBefore(func(args []string) bool {
		if len(args) != 3 || !strings.EqualFold(args[0]+args[1], "scriptload") {
			return false
		}
		if found := title.FindStringSubmatch(args[2]); found != nil && about.MatchString(args[2]) {
			sum := sha1.Sum([]byte(args[2]))
			names[hex.EncodeToString(sum[:])] = found[1]
		}
		return false
	})
	where := storetest.Where(srv)
	where.Host, where.Port = address(t, proxy)
	st, err := store.Dial(where, redistest.Namespace(t))
	if err == nil {
		err = errors.Join(st.LoadScripts(t.Context()), st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	proxy.Bury()
	return names
}

// address is where a proxy listens.
func address(t *testing.T, p *redistest.Proxy) (host string, port int) {
	t.Helper()
	host, text, err := net.SplitHostPort(p.Addr())
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}
