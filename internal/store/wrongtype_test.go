package store_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// TestLongWrongType: Redis does not undo a script that fails in the middle. With
// any one key of the namespace of another type, each scenario of each script
// either does nothing at all or does all it would have done.
func TestLongWrongType(t *testing.T) {
	t.Parallel()
	for _, script := range store.MutatingScripts() {
		if script == "watermark" || script == "flush" || script == "arrive" {
			continue // they have no key but meta, see TestWrongTypeOfMeta
		}
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			for name, l := range allLosses(script) {
				if script+name == "epochnone" {
					continue // it looks at meta alone
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					l.spoil(t, script)
				})
			}
		})
	}
}

// spoil plays the scenario once with each key spoiled.
func (l *loss) spoil(t *testing.T, script string) {
	t.Helper()
	sp := storetest.New(t)
	l.begin(t, sp)
	l.call(t, sp.Store).must(t)
	want, refused := dump(t, sp), 0
	for _, key := range spoilable(want) {
		l.begin(t, sp)
		call := l.call(t, sp.Store)
		spoil(t, sp, key)
		before := dump(t, sp)
		_, err := call()
		after := dump(t, sp)
		if before[key] != after[key] {
			t.Errorf("the spoiled key %s was changed", key)
		}
		if err == nil && strings.HasPrefix(key, "task:") && sp.Raw.Exists(t.Context(), sp.Key("claim:w")).Val() == 1 {
			continue // a claim leaves a damaged task out and takes the others
		}
		if script == "move" && errors.Is(err, task.ErrDamaged) { // a server is told of the task
			delete(before, "due")
			delete(after, "due")
			delete(before, "wake_server")
			delete(after, "wake_server")
		}
		wanted := maps.Clone(want)
		if key == "full" { // who waits for a place is woken by what stands there
			for _, list := range []string{"wake_queue:q", "wake_node:n"} {
				delete(wanted, list)
				delete(before, list)
				delete(after, list)
			}
		}
		if wanted[key] = before[key]; cmp.Equal(wanted, after) && err == nil {
			continue // it does without this key
		}
		refused++
		sameDump(t, before, after, "with "+key+" spoiled, error "+errText(err))
		if err != nil && strings.Contains(err.Error(), sp.Namespace) && !errors.Is(err, task.ErrDamaged) {
			t.Errorf("the error echoes keys: %v", err)
		}
	}
	if refused == 0 && script != "halt" { // which does what it can, whatever is spoiled
		t.Error("no spoiled key made a difference: the scenario shows nothing")
	}
}

func errText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

// begin empties the space and prepares it anew.
func (l *loss) begin(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.Anew(t)
	sp.SetClock(t, noon)
	if l.prepare != nil {
		l.prepare(t, sp)
	}
}

// spoilable are the keys to spoil: those there are, the state sets, and others
// that a script may write. meta only tells the time here.
func spoilable(there map[string]string) []string {
	all := maps.Clone(there)
	for _, st := range statemachine.States() {
		all[string(st)] = ""
	}
	for _, name := range []string{
		"due", "buckets", "ready:default:::0", "wake:default:::0", "wake_server", "set_aside", "managers", "handling",
		"worker", "worker_id", "worker_id:w", "claim:w", "request:again", "task:1", "task:2", "task:3",
		"lease", "worker:w", "held:w", "halt:w", "follow", "live:1",
		"queues", "nodes", "busy:queue:default", "busy:queue:q", "busy:node:n", "busy:both:1:n:default",
		"used:n", "stop:w", "full", "wake_queue:q", "wake_node:n", "tally:default", "suspects",
		"plan:1", "plan_tasks:1", "freed:1", "dependants:1", "stuck:1", "draining", "growth:1", "plans", "plan_id",
		"blobs", "blob:" + someHash, "files", "file:" + someHash, "tokens",
	} {
		all[name] = ""
	}
	delete(all, "meta")
	delete(all, "dependants:4") // of an id that nobody has had
	var names []string
	for name := range all {
		names = append(names, name)
	}
	return names
}

// spoil puts another type in the place of a key.
func spoil(t *testing.T, sp *storetest.Space, key string) {
	t.Helper()
	ctx, full := t.Context(), sp.Key(key)
	isList := slices.ContainsFunc([]string{"wake", "halt", "plan_tasks", "dependants", "stuck", "changes"}, func(list string) bool {
		return strings.HasPrefix(key, list)
	})
	sp.Raw.Del(ctx, full)
	if isList {
		sp.Raw.SAdd(ctx, full, "spoiled")
		return
	}
	sp.Raw.RPush(ctx, full, "spoiled")
}

// TestWrongTypeOfMeta: the clock of these tests lies in meta, so a Redis with
// its own clock shows what becomes of a meta that is no hash.
func TestWrongTypeOfMeta(t *testing.T) {
	t.Parallel()
	for script, l := range map[string]loss{
		"open": scriptLosses["open"]["one"], "watermark": scriptLosses["watermark"]["moved"], "turn": {
			prepare: opened(1), call: claimCall(1),
		},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			st, err := store.Dial(sp.Where, sp.Namespace)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			if l.prepare != nil {
				l.prepare(t, sp)
			}
			spoil(t, sp, "meta")
			before := dump(t, sp)
			if _, err := l.call(t, st)(); err == nil {
				t.Error("no error")
			}
			sameDump(t, before, dump(t, sp), "with meta spoiled")
		})
	}
}
