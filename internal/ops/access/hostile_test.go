package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/ops/access"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Cells of the table "What a hostile login could do" of OPERATIONS.md. Yes is
// possible, no is refused, old is refused by the rules for Redis 7 only.
const yes, no, old = "yes", "no", "no; 6.2: yes"

// deed is something that only a hostile program does: one row of the table.
type deed struct {
	row string
	// server, worker, manager and viewer are the cells.
	server, worker, manager, viewer string
	// ways are lists of commands, each of which would do it; a word that begins
	// with a colon is a key or channel of the namespace.
	ways []way
	// came tells whether it has come about; nil: it has if a way is accepted.
	came func(t *testing.T, v *victims) bool
}

// way is a list of commands; the words of each are separated by blanks.
type way []string

// deeds are all rows. Task 1 is archived, task 2 runs on the worker "victim".
var deeds = []deed{
	{
		"read every task: its source, input and outputs", yes, yes, yes, yes,
		[]way{{"HGETALL :task:1"}}, nil,
	},
	{
		"keep Redis busy with expensive calls", yes, yes, yes, yes,
		[]way{{"ZRANGE :archived 0 -1", "HGETALL :meta"}}, nil,
	},
	{
		"fill the memory of Redis", yes, yes, yes, no,
		[]way{{"HSET :task:999 x " + strings.Repeat("x", 1000)}, {"SET :claim:x y"}, {"ZADD :open 1 1"}, {"LPUSH :wake:x y"}, {"XADD :events * x y"}}, nil,
	},
	{
		"open a task, and so run any program on any worker", yes, yes, yes, no,
		[]way{{
			"HSET :task:9 id 9 namespace x program evil source rsync:/x input x start_after 0 end_before inf timeout inf max_fails 0 " +
				"max_timeouts 0 state open round 0 fails 0 timeouts 0 log - 0:open 1",
			"ZADD :open 0 9", "ZADD :ready:default:::0 1 a9",
		}},
		func(t *testing.T, v *victims) bool { return v.claimable(t, 9) },
	},
	{
		"run an archived task again", yes, yes, yes, no,
		[]way{{"HSET :task:1 state open", "HDEL :task:1 outcome", "ZADD :open 0 1", "ZADD :ready:default:::0 1 a1"}},
		func(t *testing.T, v *victims) bool { return v.claimable(t, 1) },
	},
	{
		"report in the place of another worker", yes, yes, yes, no,
		[]way{{"HSET :task:2 state executed 0:output forged 0:error  0:executed 1 rev 7", "ZREM :running 2", "ZADD :executed 1 2"}},
		func(t *testing.T, v *victims) bool {
			task := v.Task(t, 2)
			return task.State == statemachine.Executed && task.Fields["0:output"] == "forged" && v.Report(t, &v.claimed, "true", "").Err != nil
		},
	},
	{
		"change or erase the record of any task", yes, yes, yes, no,
		[]way{
			{"DEL :task:1"},
			{"HDEL :task:1 state 0:output"}, {"HSET :task:1 0:output forged"}, {"SET :task:1 x"}, {"EXPIRE :task:1 0"}, {"HINCRBY :task:1 fails 1"},
		},
		func(t *testing.T, v *victims) bool {
			return v.Raw.HGet(t.Context(), v.Key("task:1"), "0:output").Val() != "result"
		},
	},
	{
		"stop a worker, or end its session", yes, yes, yes, no,
		[]way{{"HSET :worker:victim order stop"}, {"HSET :worker:victim state lost"}, {"DEL :worker:victim"}, {"SADD :stop:victim 2"}},
		func(t *testing.T, v *victims) bool {
			r, err := v.Store.Renew(t.Context(), v.session, fleet.Heartbeat{State: task.WorkerReady})
			return err != nil || r.Order == task.CommandStop
		},
	},
	{
		"end all sessions with a new epoch, so that all running tasks run again", yes, yes, yes, no,
		[]way{{"HSET :meta epoch 7"}, {"HINCRBY :meta epoch 7"}, {"DEL :meta"}, {"SET :meta x"}},
		func(t *testing.T, v *victims) bool {
			_, err := v.Store.Renew(t.Context(), v.session, fleet.Heartbeat{State: task.WorkerReady})
			return err != nil
		},
	},
	{
		"forge or erase the events that `verify` checks", yes, yes, yes, no,
		[]way{{"XADD :events MAXLEN 0 * id 1"}, {"DEL :events"}, {"XADD :events * id 1"}},
		func(t *testing.T, v *victims) bool {
			newest, err := v.Raw.XRevRangeN(t.Context(), v.Key("events"), "+", "-", 1).Result()
			return err == nil && (len(newest) == 0 || len(newest[0].Values) == 1)
		},
	},
	{
		"take a node out of service", yes, yes, yes, no,
		[]way{{"HSET :node:node-1 maxthreads 0", "HINCRBY :meta rules 1"}},
		func(t *testing.T, v *victims) bool {
			return v.Raw.HGet(t.Context(), v.Key("node:node-1"), "maxthreads").Val() == "0"
		},
	},
	{
		"cancel a plan", yes, yes, yes, no,
		[]way{{"HSET :plan:1 state cancelled"}}, nil,
	},
	{
		"change what the tasks of a plan need", yes, no, yes, no,
		[]way{{"RPUSH :dependants:1 2"}, {"LPUSH :dependants:1 2"}, {"DEL :plan_tasks:1"}, {"RPUSH :plan_tasks:1 9"}}, nil,
	},
	{
		"pause or change a queue", yes, old, yes, no,
		[]way{{"HSET :queue:q paused 1"}, {"SADD :queues r"}, {"DEL :queue:q"}}, nil,
	},
	{
		"change an upload, which workers notice by its hash, or remove one", yes, old, yes, no,
		[]way{{"SET :blob:0a:0 x"}, {"DEL :blob:0a"}, {"DEL :blob:0a:0"}}, nil,
	},
	{
		"change returned files, which readers notice by their hash, or remove some", yes, yes, old, no,
		[]way{{"SET :file:0a:0 x"}, {"DEL :file:0a"}, {"DEL :file:0a:0"}}, nil,
	},
	{
		"have workers remove versions of programs, which they fetch again", yes, old, yes, no,
		[]way{{"SET :errand:r {}", "PUBLISH :call:victim r"}}, nil,
	},
	{
		"say in the place of a worker which versions of programs it keeps", yes, yes, yes, no,
		[]way{{"SET :answer:r:victim {}"}}, nil,
	},
	{
		"give ids out a second time", yes, no, yes, no,
		[]way{{"SET :task_id 0"}, {"DEL :task_id"}, {"INCRBY :task_id -1"}}, nil,
	},
	{
		"have a key of a submission answer with another task", yes, no, yes, no,
		[]way{{"SET :key:1:q:k 1"}, {"SET :request:k 1"}, {"DEL :key:1:q:k"}, {"EXPIRE :request:k 0"}}, nil,
	},
	{
		"take ended tasks away from the handlers of a manager", yes, no, yes, no,
		[]way{{"HSET :handling 1 me"}, {"HDEL :managers x"}, {"DEL :handling"}}, nil,
	},
	{
		"hide from `verify` that tasks are gone", yes, old, old, no,
		[]way{{"ZADD :purged_ids 9 1"}, {"HSET :epochs 2 x"}, {"HSET :set_aside 1 x"}}, nil,
	},
	{
		"give itself an access token of the HTTP interface, or revoke those of others", yes, no, yes, no,
		[]way{{"HSET :tokens id x"}, {"HDEL :tokens id"}, {"DEL :tokens"}}, nil,
	},
	{
		"read who has access tokens, and their hashes", yes, no, yes, yes,
		[]way{{"HGETALL :tokens"}, {"HGET :tokens id"}, {"HVALS :tokens"}}, nil,
	},
	{
		"add entries to the log of changes, in any name", yes, no, yes, no,
		[]way{{"RPUSH :changes x"}}, nil,
	},
	{
		"remove or alter entries of the log of changes", yes, no, old, no,
		[]way{{"LPOP :changes"}, {"DEL :changes"}, {"SET :changes x"}, {"EXPIRE :changes 0"}, {"SET :changes_gone 9"}, {"LPUSH :changes x"}},
		nil,
	},
	{
		"tell the programs of the namespace that something has changed", yes, yes, yes, no,
		[]way{{"PUBLISH :changed x"}, {"PUBLISH :rules x"}}, nil,
	},
	{
		"run its own scripts", yes, no, no, no,
		[]way{{"EVAL return(1) 0"}, {"EVAL_RO return(1) 0"}, {"SCRIPT LOAD return(1)"}, {"FUNCTION LOAD x"}, {"FCALL x 0"}}, nil,
	},
	{
		"read the settings of Redis, the password of its default user among them", yes, no, no, no,
		[]way{{"CONFIG GET *"}}, nil,
	},
	{
		"list, move or delete keys it does not name", no, no, no, no,
		[]way{
			{"KEYS *"}, {"SCAN 0"}, {"RANDOMKEY"}, {"DBSIZE"}, {"FLUSHDB"}, {"FLUSHALL"}, {"SWAPDB 0 1"}, {"MOVE :task:1 1"},
			{"COPY :task:1 :x DB 1"}, {"RENAME :task:1 x"}, {"DUMP :task:1"}, {"RESTORE :x 0 x"}, {"MIGRATE h 1 :task:1 0 1"},
			{"SORT :open BY x STORE x"},
		}, nil,
	},
	{
		"reach another namespace", no, no, no, no,
		[]way{
			{"HGETALL other:task:1"}, {"SET other:task_id 0"}, {"GET other:task_id"}, {"DEL other:task:1"}, {"PUBLISH other:changed x"},
			{"SUBSCRIBE other:changed"}, {"PSUBSCRIBE *"}, {"XREAD STREAMS other:live:1 0"}, {"BLPOP other:wake_server 1"},
		}, nil,
	},
	{
		"reach a namespace of the same name in another database", no, no, no, no,
		[]way{{"SELECT 1"}, {"SELECT 0"}}, nil,
	},
	{
		"administer Redis: settings, users, connections, replication, its end", no, no, no, no,
		[]way{
			{"CONFIG SET appendonly no"}, {"CONFIG REWRITE"}, {"CONFIG RESETSTAT"}, {"ACL LIST"}, {"ACL SETUSER default on"}, {"ACL LOG"},
			{"CLIENT LIST"}, {"CLIENT KILL ID 1"}, {"CLIENT PAUSE 1"}, {"CLIENT NO-EVICT on"}, {"MONITOR"}, {"SHUTDOWN NOSAVE"}, {"SAVE"},
			{"BGSAVE"}, {"BGREWRITEAOF"}, {"REPLICAOF NO ONE"}, {"FAILOVER"}, {"SYNC"}, {"PSYNC ? -1"}, {"DEBUG SLEEP 0"},
			{"MODULE LIST"}, {"MODULE LOAD x"}, {"SLOWLOG RESET"}, {"LATENCY RESET"}, {"MEMORY DOCTOR"}, {"SCRIPT FLUSH"}, {"SCRIPT KILL"},
			{"FUNCTION FLUSH"}, {"CLUSTER RESET"}, {"PFSELFTEST"},
		}, nil,
	},
}

// cell is what the table says of a role.
func (d *deed) cell(role access.Role) string {
	return map[access.Role]string{access.Server: d.server, access.Worker: d.worker, access.Manager: d.manager, access.Viewer: d.viewer}[role]
}

// The table in OPERATIONS.md is that of the tests: what it says is possible has
// been done, and what it says is refused has been tried.
func TestHostileTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "| a hostile login could | server | worker | manager | viewer |\n|---|---|---|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	var want strings.Builder
	for _, d := range deeds {
		fmt.Fprintf(&want, "| %s | %s | %s | %s | %s |\n", d.row, d.server, d.worker, d.manager, d.viewer)
	}
	if diff := cmp.Diff(strings.TrimSpace(want.String()), table); diff != "" {
		t.Errorf("OPERATIONS.md has another table (+):\n%s", diff)
	}
}

// Every deed is tried with the login of every role, by plain commands and from
// inside a script, under the rules for Redis 7 and under those for 6.2.
func TestHostileLogins(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			s := f.start(t)
			sha, _ := s.Do(t, "SCRIPT", "LOAD", hostileScript).(string)
			for _, d := range deeds {
				possible := d.cell(f.role) == yes || d.cell(f.role) == old && f.old
				t.Run(d.row, func(t *testing.T) {
					t.Parallel()
					for name, try := range map[string]attempt{"commands": plainly, "a script": inScript(sha)} {
						if possible {
							d.succeeds(t, s, f, name, try)
						} else {
							d.fails(t, s, f, name, try)
						}
					}
				})
			}
		})
	}
}

// fails wants every way refused, and nothing brought about.
func (d *deed) fails(t *testing.T, s *redistest.Server, f form, name string, try attempt) {
	t.Helper()
	v := newVictims(t, s)
	c := v.login(t, f)
	for _, w := range d.ways {
		if err := try(t.Context(), c, v.Namespace, w); !refused(err) {
			t.Errorf("%v: %s by %s is not refused: %.80q: %v", f, d.row, name, w, err)
		}
	}
	if d.came != nil && d.came(t, v) {
		t.Errorf("%v: %s by %s came about, although it was refused", f, d.row, name)
	}
}

// succeeds wants one way at least to work.
func (d *deed) succeeds(t *testing.T, s *redistest.Server, f form, name string, try attempt) {
	t.Helper()
	var last error
	for _, w := range d.ways {
		v := newVictims(t, s)
		if last = try(t.Context(), v.login(t, f), v.Namespace, w); errors.Is(last, errNotInScripts) {
			return
		}
		if last == nil && (d.came == nil || d.came(t, v)) {
			return
		}
	}
	t.Errorf("%v: %s by %s is documented as possible, and does not work: %v", f, d.row, name, last)
}

// attempt sends commands.
type attempt func(ctx context.Context, c *redis.Client, ns string, w way) error

func plainly(ctx context.Context, c *redis.Client, ns string, w way) error {
	for _, call := range w.words(ns) {
		args := make([]any, len(call))
		for i, word := range call {
			args[i] = word
		}
		if err := c.Do(ctx, args...).Err(); err != nil {
			return err
		}
	}
	return nil
}

// hostileScript does whatever it is told, as a script that a server has loaded.
const hostileScript = "for _, call in ipairs(cjson.decode(ARGV[1])) do redis.call(unpack(call)) end return 1"

// errNotInScripts is for a command that Redis allows no script, whatever the rights.
var errNotInScripts = errors.New("not allowed in scripts")

func inScript(sha string) attempt {
	return func(ctx context.Context, c *redis.Client, ns string, w way) error {
		calls, err := json.Marshal(w.words(ns))
		if err != nil {
			return err
		}
		err = c.EvalSha(ctx, sha, []string{ns + ":meta"}, calls).Err()
		if err != nil && strings.Contains(err.Error(), "not allowed from script") {
			return errNotInScripts
		}
		return err
	}
}

// words are the commands, with the keys of a namespace.
func (w way) words(ns string) (calls [][]string) {
	for _, call := range w {
		words := strings.Split(call, " ")
		for i, word := range words {
			if strings.HasPrefix(word, ":") {
				words[i] = ns + word
			}
		}
		calls = append(calls, words)
	}
	return calls
}

// refused says whether Redis did not let a user do it, or does not know the command.
func refused(err error) bool {
	if err == nil {
		return false
	}
	return errors.Is(err, errNotInScripts) || slices.ContainsFunc([]string{
		"NOPERM", "ACL failure", "The user executing the script can't", "unknown command", "Unknown Redis command", "nknown subcommand",
	}, func(s string) bool { return strings.Contains(err.Error(), s) })
}

// victims are the tasks, the worker and the records that deeds are about.
type victims struct {
	*storetest.Space
	session fleet.Session
	claimed tasks.Claimed
}

func newVictims(t *testing.T, s *redistest.Server) *victims {
	t.Helper()
	v := &victims{Space: storetest.On(t, s)}
	v.AddQueue(t, task.ParseQueue("q", nil))
	v.Open(t, storetest.Spec(), storetest.Spec())
	v.session = v.Register(t, "victim")
	for _, c := range v.ClaimUnder(t, v.session, 2) {
		v.claimed = c
		if c.Task.ID == 1 {
			v.Report(t, &c, "result", "")
		}
	}
	for _, step := range []struct {
		event statemachine.Event
		actor statemachine.Actor
	}{{statemachine.Settle, statemachine.Server}, {statemachine.Archive, statemachine.Manager}} {
		task := v.Task(t, 1)
		m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: step.event, Actor: step.actor, Round: task.Round}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := storetest.Apply(t.Context(), v.Store, tasks.Commit{Move: m, Writer: "x", Bucket: task.Bucket}); err != nil {
			t.Fatal(err)
		}
	}
	if v.Task(t, 1).State != statemachine.Archived || v.claimed.Task.ID != 2 {
		t.Fatalf("task 1 is %s, claimed is task %d", v.Task(t, 1).State, v.claimed.Task.ID)
	}
	return v
}

// login is a connection of its own with the printed rules of a role.
func (v *victims) login(t *testing.T, f form) *redis.Client {
	t.Helper()
	return create(t, v.Server, access.User{Role: f.role, Namespace: v.Namespace, Old: f.old})
}

// claimable says whether a worker that knows nothing gets the task.
func (v *victims) claimable(t *testing.T, id int64) bool {
	t.Helper()
	return slices.ContainsFunc(v.Claim(t, "innocent", 9), func(c tasks.Claimed) bool { return c.Task.ID == id })
}
