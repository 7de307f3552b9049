package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// damage is something done to a world by hand.
type damage struct {
	name, task string
	kind       Kind
	commands   [][]string // %k is the task's key, %i its id, %n the namespace
}

var damages = []damage{
	{"no trace", "ok", Lost, [][]string{{"DEL", "%k"}, {"ZREM", "%n:succeeded", "%i"}}},
	{"purged and listed", "archived", Balance, [][]string{{"ZADD", "%n:purged_ids", "%i", "%i"}, {"HSET", "%n:purged", "succeeded", "1"}}},
	{"may go and is not archived", "ok", Index, [][]string{{"ZADD", "%n:archived:succeeded", "5", "%i"}}},
	{"may go with another outcome", "archived", Index, [][]string{{"ZADD", "%n:archived:failed", "5", "%i"}}},
	{"hash deleted", "ok", Damaged, [][]string{{"DEL", "%k"}}},
	{"hash of another type", "open", Damaged, [][]string{{"DEL", "%k"}, {"SET", "%k", "x"}}},
	{"half-written hash", "ok", Damaged, [][]string{{"HDEL", "%k", "start_after", "end_before"}}},
	{"round is no number", "fail", Damaged, [][]string{{"HSET", "%k", "round", "many"}}},
	{"unknown state", "ok", Damaged, [][]string{{"HSET", "%k", "state", "lost"}}},
	{"in no set", "fail", Sets, [][]string{{"ZREM", "%n:failed", "%i"}}},
	{"in two sets", "ok", Sets, [][]string{{"ZADD", "%n:open", "0", "%i"}}},
	{"in the wrong set", "running", Sets, [][]string{{"ZREM", "%n:running", "%i"}, {"ZADD", "%n:executed", "0", "%i"}}},
	{"archived from nowhere", "running", Sets, [][]string{{"ZREM", "%n:running", "%i"}, {"ZADD", "%n:archived", "0", "%i"}}},
	{"a fail too many", "open", Counters, [][]string{{"HSET", "%k", "fails", "1", "max_fails", "1"}}},
	{"a fail too few", "again", Counters, [][]string{{"HSET", "%k", "fails", "0"}}},
	{"archived without outcome", "archived", Counters, [][]string{{"HDEL", "%k", "outcome"}}},
	{"a fault too many", "open", Counters, [][]string{{"HSET", "%k", "faults", "1"}}},
	{"failed too early with a code to retry", "fail", Limits,
		[][]string{{"HSET", "%k", "max_fails", "4", "0:exit_code", "7", "fatal_exit_codes", "1", "retry_exit_codes", "7,9"}}},
	{"failed too early with a time for another try", "fail", Limits, [][]string{{"HSET", "%k", "max_fails", "4", "0:retry", "2000000000"}}},
	{"timed out too early, whatever the exit code", "slow", Limits,
		[][]string{{"HSET", "%k", "max_timeouts", "4", "0:exit_code", "7", "fatal_exit_codes", "7"}}},
	{"an orphan although a stop was asked for", "lost", Limits, [][]string{{"HSET", "%k", "max_losses", "4", "cancel_requested", "5"}}},
	{"failed too early", "fail", Limits, [][]string{{"HSET", "%k", "max_fails", "4"}}},
	{"opened too often", "again", Limits, [][]string{{"HSET", "%k", "max_fails", "0"}}},
	{"no stamp of the state", "ok", Stamps, [][]string{{"HDEL", "%k", "0:succeeded"}}},
	{"no claim", "running", Stamps, [][]string{{"HDEL", "%k", "0:worker"}}},
	{"no claim of a round before", "again", Stamps, [][]string{{"HDEL", "%k", "0:running"}}},
	{"no report", "archived", Stamps, [][]string{{"HDEL", "%k", "0:executed"}}},
	{"not in its bucket", "open", Index, [][]string{{"DEL", "%n:ready:default:::0"}, {"ZADD", "%n:ready:default:::0", "8000000000", "a8"}}},
	{"not in the index of deadlines", "deadline", Index, [][]string{{"ZREM", "%n:due", "%i"}}},
	{"running without a deadline", "running", Index, [][]string{{"ZREM", "%n:due", "%i"}}},
	{"not counted in its queue", "running", Index, [][]string{{"SREM", "%n:busy:queue:default", "%i"}}},
	{"not counted on its node", "running", Index, [][]string{{"SREM", "%n:busy:node:n", "%i"}}},
	{"counted and does not run", "ok", Index, [][]string{{"SADD", "%n:busy:queue:default", "%i"}}},
	{"has resources and does not run", "ok", Index, [][]string{{"SADD", "%n:nodes", "n"}, {"HSET", "%n:used:n", "%i", "gpu:1[0]"}}},
	{"faults beyond the maximum", "fail", Limits, [][]string{{"HSET", "%k", "fails", "0", "max_faults", "0", "faults", "2", "round", "1"},
		{"HSET", "%k", "1:open", "1", "1:running", "1", "1:worker", "w", "1:executed", "1", "1:failed", "1"}, {"DEL", "%n:events"}}},
	{"an upload is missing", "open", Blob, [][]string{{"HSET", "%k", "source", "blob:sha256=" + strings.Repeat("0a", 32)}}},
	{"a stdin is missing", "open", Blob, [][]string{{"HSET", "%k", "stdin", "blob:sha256=" + strings.Repeat("0a", 32)}}},
	{"the directory of a command is missing", "open", Blob, [][]string{{"HSET", "%k", "source", "command:./x#sha256=" + strings.Repeat("0a", 32)}}},
	{"a part of an upload is missing", "", Blob,
		[][]string{{"ZADD", "%n:blobs", "9000000000", "0a"}, {"HSET", "%n:blob:0a", "size", "3", "complete", "1"}, {"HSET", "%n:meta", "blob_bytes", "3"}}},
	{"a part of returned files is missing", "", Blob,
		[][]string{{"ZADD", "%n:files", "9000000000", "0a"}, {"HSET", "%n:file:0a", "size", "3", "complete", "1"}, {"HSET", "%n:meta", "blob_bytes", "3"}}},
	{"uploads are counted wrongly", "", Blob, [][]string{{"HSET", "%n:meta", "blob_bytes", "3"}}},
	{"foreign member", "", Unknown, [][]string{{"ZADD", "%n:open", "0", "999"}}},
	{"deadline far too late in the index", "deadline", Index, [][]string{{"ZADD", "%n:due", "9000009000", "%i"}}},
	{"a deadline of a task without one", "open", Index, [][]string{{"ZADD", "%n:due", "9000009000", "%i"}}},
	{"ended and in the index of deadlines", "ok", Index, [][]string{{"ZADD", "%n:due", "5", "%i"}}},
	{"ended and in line", "ok", Index, [][]string{{"ZADD", "%n:ready:default:::0", "5", "a%i"}}},
	{"running and in line", "running", Index, [][]string{{"ZADD", "%n:ready:default:::0", "5", "b%i"}}},
	{"in line in another bucket", "deadline", Index, [][]string{{"SADD", "%n:buckets", "default:::9"}, {"ZADD", "%n:ready:default:::9", "8000000000", "a%i"}}},
	{"no id in line", "", Index, [][]string{{"ZADD", "%n:ready:default:::0", "8000000000", "zz"}}},
	{"no id with a deadline", "", Index, [][]string{{"ZADD", "%n:due", "8000000000", "zz"}}},
	{"no id in a state", "", Unknown, [][]string{{"ZADD", "%n:failed", "1", "zz"}}},
	{"held and not running", "ok", Index, [][]string{{"SADD", "%n:worker", "x"}, {"SADD", "%n:held:x", "%i"}}},
	{"held by another", "running", Index, [][]string{{"ZADD", "%n:lease", "9000000000", "x"}, {"SADD", "%n:held:x", "%i"}}},
	{"held and never given out", "", Index, [][]string{{"SADD", "%n:worker", "x"}, {"SADD", "%n:held:x", "999"}}},
	{"to be stopped and not running", "ok", Index, [][]string{{"SADD", "%n:worker", "x"}, {"SADD", "%n:stop:x", "%i"}}},
	{"executed before it ran", "ok", Order, [][]string{{"HSET", "%k", "0:executed", "9999999999", "0:succeeded", "9999999999.6", "0:running", "9999999999.5"}}},
	{"the next round before the last", "again", Order, [][]string{{"HSET", "%k", "0:failure", "9999999999"}}},
	{"two ends of a round", "again", Ends, [][]string{{"HSET", "%k", "0:timeout", "1"}}},
	{"two ends of a task", "fail", Ends, [][]string{{"HSET", "%k", "0:succeeded", "1"}}},
	{"an end before the last round", "again", Ends, [][]string{{"HSET", "%k", "0:failed", "1"}}},
	{"a timeout that was not counted", "ok", Ends, [][]string{{"HSET", "%k", "0:timeout", "1"}}},
	{"a failure without its stamp", "fail", Ends, [][]string{{"HDEL", "%k", "0:failure"}}},
	{"closed in another way", "ok", Ends, [][]string{{"HSET", "%k", "0:end", "terminate"}}},
	{"handed back and executed", "ok", Ends, [][]string{{"HSET", "%k", "0:end", "hand_back"}}},
	{"no lease", "leased", Index, [][]string{{"ZREM", "%n:lease", "l"}}},
	{"not held", "leased", Index, [][]string{{"SREM", "%n:held:l", "%i"}}},
	{"not told to stop", "stopping", Index, [][]string{{"SREM", "%n:stop:m", "%i"}}},
	{"to be stopped and nobody asked", "leased", Index, [][]string{{"SADD", "%n:stop:l", "%i"}}},
	{"registered anew", "leased", Index, [][]string{{"HSET", "%n:worker:l", "incarnation", "99"}}},
	{"bucket not on the list", "elsewhere", Index, [][]string{{"SREM", "%n:buckets", "default:::7"}}},
	{"an illegal step", "ok", Path, event("round", "0", "from", "succeeded", "to", "open", "event", "settle", "actor", "server")},
	{"the wrong actor", "ok", Path, event("round", "0", "from", "succeeded", "to", "archived", "event", "archive", "actor", "worker")},
	{"a step from elsewhere", "open", Path, event("round", "0", "from", "executed", "to", "succeeded", "event", "settle", "actor", "server")},
	{"a step that was not made", "open", Path, event("round", "0", "from", "open", "to", "blocked", "event", "hold", "actor", "manager")},
	{"no event", "open", Path, [][]string{{"XADD", "%n:events", "90000-0", "round", "0"}}},
}

// event is an event of the task that is added after all others.
func event(fields ...string) [][]string {
	return [][]string{append([]string{"XADD", "%n:events", "90000-0", "id", "%i", "by", "x", "at", "8000000000"}, fields...)}
}

// done does the damage to a world, and returns the id of which it must be told.
func (d *damage) done(t *testing.T, ns string, ids map[string]int64) int64 {
	t.Helper()
	id := ids[d.task]
	switch d.name {
	case "foreign member", "held and never given out":
		id = 999
	case "no event":
		id = 0
	}
	for _, words := range d.commands {
		redistest.Shared(t).Do(t, fill(words, ns, id)...)
	}
	return id
}

// TestPlantedDamage: each is found, under its kind, for its task and for no other.
func TestPlantedDamage(t *testing.T) {
	t.Parallel()
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			ns, s, ids := world(t)
			id := d.done(t, ns, ids)
			r, err := verify(t, s)
			if err != nil {
				t.Fatal(err)
			}
			if d.kind == Path { // a step may be wrong, and also leave the task where it is not
				r.Violations = r.Violations[:min(1, len(r.Violations))]
			}
			if len(r.Violations) != 1 || r.Violations[0].ID != id || r.Violations[0].Kind != d.kind || r.Violations[0].Text == "" {
				t.Errorf("found %+v, want one of kind %s for task %d", r.Violations, d.kind, id)
			}
		})
	}
}

// repairable reports whether servers can put it right: what is in the sets and indices, and a round that nobody runs.
func (d *damage) repairable() bool {
	return d.kind == Index || d.kind == Sets || d.kind == Unknown
}

// TestServerRepairs: a server puts right what is in the sets and indices, and changes no record but of a round that nobody runs;
// all else is still said.
func TestServerRepairs(t *testing.T) {
	t.Parallel()
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			ns, s, ids := world(t)
			d.done(t, ns, ids)
			before := records(t, s)
			r := served(t, ns, s, func(r *Report) bool { return !d.repairable() || r.OK() })
			if !d.repairable() && r.OK() {
				t.Error("nothing is said any more")
			}
			if diff := cmp.Diff(before, records(t, s)); diff != "" && d.name != "registered anew" {
				t.Errorf("records have changed:\n%s", diff)
			}
		})
	}
}

// served lets a server look at everything, and returns what is left when it is as it should be. A stray member of an index tells
// that the server has looked there; plans it looks at next.
func served(t *testing.T, ns string, s *store.Store, so func(*Report) bool) (r Report) {
	t.Helper()
	rd := redistest.Shared(t)
	rd.Do(t, "ZADD", ns+":due", "8000000000", "seen")
	defer serve(t, ns)()
	wait.Eventually(t, time.Minute, func() bool {
		if rd.Do(t, "ZSCORE", ns+":due", "seen") != nil {
			return false
		}
		var err error
		r, err = verify(t, s)
		return err == nil && so(&r)
	}, "a server leaves %v", &r.Violations)
	return r
}

// verify is Verify in less time: nothing moves here.
func verify(t *testing.T, s *store.Store) (Report, error) {
	t.Helper()
	a := newAuditor(s)
	a.pause = 5 * time.Millisecond
	err := a.run(t.Context())
	return a.report, err
}

// records are all hashes of tasks.
func records(t *testing.T, s *store.Store) map[int64]map[string]string {
	t.Helper()
	var ids []int64
	for id := range int64(20) {
		ids = append(ids, id)
	}
	tasks, err := s.TasksByID(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int64]map[string]string{}
	for i, task := range tasks {
		if task != nil {
			all[ids[i]] = task.Fields
		}
	}
	return all
}
