package manager

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func hashOf(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// A record has what a worker wrote, as far as it can be read.
func TestRoundRecord(t *testing.T) {
	t.Parallel()
	task := Task{Fields: map[string]string{
		"0:worker": "w", "0:node": "n", "0:incarnation": "7", "0:claim": "c", "0:output": "cut", "0:output_bytes": "1000",
		"0:output_sha256": "feed", "0:error": "bad", "0:exit_code": "3", "0:user_time": "1.500000", "0:system_time": "0.25",
		"0:max_memory": "4096", "0:program_sha256": "beef", "0:progress": "0.4 half", "0:running": "1.000000",
		"1:output": "ok", "1:stderr": "chat", "1:signal": "killed", "1:user_time": "NaN", "1:max_memory": "lots", "1:incarnation": "",
		"2:dropped": "1", "2:output_bytes": "9", "02:output": "x", "-1:output": "x", "x:output": "x", "round": "2",
	}}
	rounds := task.Rounds()
	if len(rounds) != 3 {
		t.Fatalf("%d rounds, want 3", len(rounds))
	}
	r := rounds[0]
	if r.Worker != "w" || r.Node != "n" || r.Incarnation != 7 || r.Claim != "c" || r.ExitCode != "3" || r.Signal != "" ||
		r.UserTime != 1500*time.Millisecond || r.SystemTime != 250*time.Millisecond || r.MaxMemory != 4096 ||
		r.ProgramSHA256 != "beef" || r.Progress != (RoundProgress{Part: 0.4, Text: "half"}) || r.OutputBytes != 1000 ||
		r.OutputSHA256() != "feed" || r.ErrorBytes != 3 || r.ErrorSHA256() != hashOf("bad") || r.Dropped ||
		r.Stamps["running"] != statemachine.Time(statemachine.Second) {
		t.Errorf("round 0: %+v", r)
	}
	r = rounds[1]
	if r.Stderr != "chat" || r.Error != "" || r.ErrorBytes != 4 || r.ErrorSHA256() != hashOf("chat") || r.Signal != "killed" ||
		r.UserTime != 0 || r.MaxMemory != 0 || r.Incarnation != 0 || !r.Progress.IsZero() || r.OutputSHA256() != hashOf("ok") {
		t.Errorf("round 1: %+v", r)
	}
	if r = rounds[2]; !r.Dropped || r.OutputBytes != 9 || r.OutputSHA256() != "" || r.ErrorSHA256() != "" {
		t.Errorf("round 2: %+v", r)
	}
}

func TestProgressText(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]struct {
		far  RoundProgress
		text string
	}{
		"0.4 half done": {RoundProgress{0.4, "half done"}, "40% half done"},
		"1":             {RoundProgress{1, ""}, "100%"},
		"0.29":          {RoundProgress{0.29, ""}, "29%"},
		"0.999 almost":  {RoundProgress{0.999, "almost"}, "99% almost"},
		" 0  begun ":    {RoundProgress{0, "begun"}, "0% begun"},
		"":              {RoundProgress{-1, ""}, ""},
		"half":          {RoundProgress{-1, "half"}, "half"},
		"7 of 9":        {RoundProgress{-1, "7 of 9"}, "7 of 9"},
		"NaN x":         {RoundProgress{-1, "NaN x"}, "NaN x"},
	} {
		far := ParseProgress(field)
		if far != want.far || far.String() != want.text || far.IsZero() != (field == "") {
			t.Errorf("%q: %+v, %q", field, far, far)
		}
	}
}

// Wait reports what a running task says of its progress.
func TestWaitReportsProgress(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 2, spec())
	srv.Do(t, "HSET", ns+":task:2", "state", "running", "0:progress", "0.5 half")
	srv.Do(t, "ZREM", ns+":open", "2")
	srv.Do(t, "ZADD", ns+":running", "1", "2")
	var seen []RunningTask
	_, err := m.Wait(t.Context(), nil, func(p Progress) {
		if len(p.Running) == 0 {
			return
		}
		if seen == nil {
			srv.Do(t, "HSET", ns+":task:2", "0:progress", "0.9")
		} else {
			srv.Do(t, "HSET", ns+":task:2", "state", "succeeded")
			worktest.Drain(t, s, worktest.Echo)
		}
		seen = append(seen, p.Running...)
	})
	if err != nil || len(seen) != 2 || seen[0] != (RunningTask{2, RoundProgress{0.5, "half"}}) || seen[1].Progress.Part != 0.9 {
		t.Errorf("saw %+v, %v", seen, err)
	}
}

// An error names what the caller has set, not what came from the defaults.
func TestSpecErrorBlamesTheCaller(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns, WithSettings("task_defaults.start_after=2000000000"))
	for want, spec := range map[string]task.Spec{
		"end_before":  {Program: "p", EndBefore: time.Unix(1000, 0)},
		"start_after": {Program: "p", EndBefore: time.Unix(1000, 0), StartAfter: time.Unix(2000, 0)},
		"fail_on":     {Program: "p", FailOn: "never"},
		"program":     {Program: "a/b"},
	} {
		if got := fieldOf(m.Check(spec)); got != want {
			t.Errorf("%q is blamed, want %q", got, want)
		}
	}
}

func fieldOf(err error) string {
	var field *statemachine.FieldError
	if !errors.As(err, &field) {
		return ""
	}
	return field.Field
}
