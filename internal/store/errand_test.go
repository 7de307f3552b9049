package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// errandOpen has an errand that nobody has done.
func errandOpen(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if err := sp.Raw.Set(t.Context(), sp.Key("errand:r"), "what", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
}

func answerCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error {
		return st.Errand(t.Context(), "w", "r", func(text string) string { return text + " answered" })
	})
}

// askCall asks somebody who does not answer.
func askCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.Ask(t.Context(), "what", []string{"mute"}, time.Millisecond) }
}

// errandBoy does errands until the test ends.
func errandBoy(t *testing.T, st *store.Store, name string, do func(text string) string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		st.Listen(ctx, name, func() {}, func() {}, func(request string) {
			working.Go(func() {
				if err := st.Errand(ctx, name, request, do); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		})
	})
	t.Cleanup(func() {
		cancel()
		working.Wait()
	})
}

// Only those are asked that may take the task, and those are named that keep the version; the question is no errand, and asks for nothing
// to be removed.
func TestKeepers(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	var mu sync.Mutex
	errands := map[string]string{}
	const installed = `{"versions":[{"program":"sum","installed":"2026-01-02T03:04:05Z"}]}`
	for name, answer := range map[string]string{
		"asker": installed, "has": installed, "lacks": `{"versions":[]}`, "odd": `{`,
		"drains": installed, "spoilt": `{"versions":[{"program":"sum"}]}`,
	} {
		s := sp.Register(t, name)
		if name == "drains" {
			if _, err := sp.Store.Renew(t.Context(), s, fleet.Heartbeat{State: task.WorkerDraining}); err != nil {
				t.Fatal(err)
			}
		}
		errandBoy(t, sp.Store, name, func(text string) string {
			mu.Lock()
			defer mu.Unlock()
			errands[name] = text
			return answer
		})
	}
	await.Eventually(t, 20*time.Second, func() bool {
		keep, asked, err := sp.Store.Keepers(t.Context(), "asker", task.Bucket{}, "sum@0a")
		mu.Lock()
		defer mu.Unlock()
		return err == nil && asked == 4 && cmp.Equal(keep, []string{"has"}) && len(errands) == 4
	}, "it is not known who keeps the version")
	for name, text := range errands {
		if text != `{"versions":["sum@0a"]}` || name == "asker" || name == "drains" {
			t.Errorf("%s is asked %s", name, text)
		}
	}
	if keep, asked, err := sp.Store.Keepers(t.Context(), "asker", task.Bucket{Env: "none"}, "sum@0a"); keep != nil || asked != 0 || err != nil {
		t.Errorf("%d are asked about a task that they may not take, %q keep it, error %v", asked, keep, err)
	}
	if left := sp.Raw.Keys(t.Context(), storetest.Pattern(sp.Namespace)).Val(); strings.Contains(strings.Join(left, " "), "answer:") {
		t.Errorf("left are %q", left)
	}
}

// Workers do what they are asked and no others do; who does not answer is left out; nothing is left.
func exerciseErrands(t *testing.T, sp *storetest.Space) {
	t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		errandBoy(t, sp.Store, name, func(text string) string { return name + " did " + text })
	}
	await.Eventually(t, 10*time.Second, func() bool {
		answers, err := sp.Store.Ask(t.Context(), "this", []string{"a", "c"}, 10*time.Second)
		return err == nil && cmp.Equal(answers, map[string]string{"a": "a did this", "c": "c did this"})
	}, "a and c do not answer")
	answers, err := sp.Store.Ask(t.Context(), "that", []string{"mute", "b"}, time.Second)
	if diff := cmp.Diff(map[string]string{"b": "b did that"}, answers); diff != "" || err != nil {
		t.Errorf("error %v; answers (-want +got):\n%s", err, diff)
	}
	if answers, err := sp.Store.Ask(t.Context(), "nobody", nil, time.Hour); len(answers) != 0 || err != nil {
		t.Errorf("nobody is asked: %v, %v", answers, err)
	}
	if left := sp.Raw.Keys(t.Context(), storetest.Pattern(sp.Namespace)).Val(); strings.Contains(strings.Join(left, " "), "errand:") {
		t.Errorf("left are %q", left)
	}
	errandOpen(t, sp)
	did := 0
	if err := sp.Store.Errand(t.Context(), "w", "gone", func(string) string { did++; return "" }); err != nil || did > 0 {
		t.Errorf("an errand that is over is done %d times, error %v", did, err)
	}
	if err := sp.Store.Errand(t.Context(), "w", "r", func(string) string { return strings.Repeat("x", 1<<20+1) }); err == nil {
		t.Error("an answer of any length is taken")
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := sp.Store.Ask(ctx, "this", []string{"mute"}, time.Hour); err == nil {
		t.Error("who gives up gets an answer")
	}
}
