package statemachine_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/scenario"
	sm "github.com/tdf-go/tdf/statemachine"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into testdata instead of comparing them")

// TestScenarios plays the stories of testdata on the pure model. The store's
// tests play the same files on Redis.
func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Test(t, "testdata", *rewrite, func(*testing.T) scenario.World { return newPure() })
}

// TestRunAnswers: the old answers are replaced, comments and blanks stay.
func TestRunAnswers(t *testing.T) {
	t.Parallel()
	got, err := scenario.Run(newPure(), []byte("# why\n> open\nwrong\nanswer\n\n> claim W1\n> advance 1s\n"))
	want := "# why\n> open\nopened task 1\n\n> claim W1\nW1 claims task 1, round 0\n> advance 1s\n" //nolint:dupword // command, answer
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// TestRunRefuses: a story with a mistake is an error, never an answer.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		"> ":                                   "line 1",
		"> dance":                              "no such command",
		"stray":                                "answers no command",
		"> open\n\nstray":                      "line 3",
		"> open speed=1":                       "no such option: speed",
		"> open by=S1":                         "open knows no option by",
		"> open timeout=fast":                  "timeout",
		"> open max_fails=-1":                  "max_fails",
		"> open max_faults=-1":                 "max_faults",
		"> open held=no":                       "held: want yes",
		"> open charge=all":                    "charge: want program",
		"> open retry_backoff=x":               "retry_backoff",
		"> open fatal_exit_codes=1,x":          "fatal_exit_codes",
		"> claim":                              "at least 1 words",
		"> show":                               "at least 1 words",
		"> show x":                             "not a task id",
		"> show 1":                             "no task 1",
		"> settle 1":                           "no task 1",
		"> read S1":                            "at least 2 words",
		"> read":                               "at least 1 words",
		"> repeat":                             "at least 1 words",
		"> repeat W1":                          "W1 has sent nothing",
		"> advance":                            "at least 1 words",
		"> advance soon":                       "invalid duration",
		"> hand-back":                          "at least 1 words",
		"> open\n> report W1 1 ok":             "W1 was never given task 1",
		"> open\n> claim W1\n> report W1 1 so": "want ok or error",
		"> open\n> deadline 1 grace=x":         "invalid duration",
		"> open\n> settle 1 excused=no":        "excused: want yes",
		"> open\n> settle 1 random=x":          "invalid syntax",
		"> open\n> heartbeat W1 1":             "W1 was never given task 1",
		"> heartbeat":                          "at least 1 words",
		"> open\n> claim W1\n> report W1 1 error exit_code=x": "invalid syntax",
		"> try":                "at least 1 words",
		"> try worker":         "at least 2 words",
		"> try worker dance 1": "no such actor or event",
		"> try worker claim 1": "no task 1",
	} {
		if _, err := scenario.Run(newPure(), []byte(script)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", script, err, says)
		}
	}
}

// brokenWorld is a world that does not keep a promise.
type brokenWorld struct {
	*pure
	lists func([]sm.State) []sm.State
	read  func(*sm.Task)
	moved func(*brokenWorld, sm.Result)
}

func (b *brokenWorld) Lists(id int64) ([]sm.State, error) {
	lists, err := b.pure.Lists(id)
	if b.lists != nil {
		lists = b.lists(lists)
	}
	return lists, err
}

func (b *brokenWorld) Read(id int64) (sm.Task, error) {
	t, err := b.pure.Read(id)
	if b.read != nil {
		b.read(&t)
	}
	return t, err
}

func (b *brokenWorld) Move(m sm.Move) (sm.Result, error) {
	result, err := b.pure.Move(m)
	if b.moved != nil {
		b.moved(b, result)
	}
	return result, err
}

// TestRunNotices: the runner notices a world that does not keep its promises.
func TestRunNotices(t *testing.T) {
	t.Parallel()
	for says, b := range map[string]*brokenWorld{
		"stands in the lists []":    {lists: func([]sm.State) []sm.State { return nil }},
		`["open" "running"]`:        {lists: func(l []sm.State) []sm.State { return append(l, sm.Running) }},
		"in round 0: losses 1":      {read: func(t *sm.Task) { t.Losses++ }},
		"move that was not made":    {moved: breakRefused},
		`is open and stands in the`: {lists: func([]sm.State) []sm.State { return []sm.State{sm.Failed} }},
	} {
		b.pure = newPure()
		_, err := scenario.Run(b, []byte("> open timeout=1s\n> claim W1\n> advance 2s\n> deadline 1\n> report W1 1 ok\n"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// breakRefused lets a refused move leave a trace.
func breakRefused(b *brokenWorld, result sm.Result) {
	if result == sm.Refused {
		b.read = func(t *sm.Task) { t.Losses, t.Round = t.Losses+1, t.Round+1 }
	}
}
