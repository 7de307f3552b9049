package task_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
)

func hashOf(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// A record has what a worker wrote, as far as it can be read.
func TestRoundRecord(t *testing.T) {
	t.Parallel()
	rounds := task.Decode(1, map[string]string{
		"0:worker": "w", "0:node": "n", "0:incarnation": "7", "0:claim": "c", "0:output": "cut", "0:output_bytes": "1000",
		"0:output_sha256": "feed", "0:error": "bad", "0:exit_code": "3", "0:user_time": "1.500000", "0:system_time": "0.25",
		"0:max_memory": "4096", "0:program_sha256": "beef", "0:progress": "0.4 half", "0:running": "1.000000", "0:odd": "1", "0:eta": "1000000000.5",
		"1:output": "ok", "1:stderr": "chat", "1:signal": "killed", "1:user_time": "NaN", "1:max_memory": "lots", "1:incarnation": "",
		"1:exit_code": "", "1:running": "inf",
		"2:dropped": "1", "2:output_bytes": "9", "02:output": "x", "-1:output": "x", "x:output": "x", "round": "2",
	}).Rounds
	if len(rounds) != 3 {
		t.Fatalf("%d rounds, want 3", len(rounds))
	}
	r := rounds[0]
	if r.Worker != "w" || r.Node != "n" || r.Incarnation != 7 || r.Claim != "c" || *r.ExitCode != 3 || r.Signal != "" ||
		r.UserTime != 1500*time.Millisecond || r.SystemTime != 250*time.Millisecond || r.MaxMemory != 4096 ||
		r.ProgramSHA256 != "beef" || r.Progress.String() != "40% half" || r.OutputBytes != 1000 ||
		r.OutputSHA256() != "feed" || r.ErrorBytes != 3 || r.ErrorSHA256() != hashOf("bad") || r.Dropped ||
		!r.Stamps["running"].Equal(time.Unix(1, 0)) || len(r.Stamps) != 1 || !r.Begun() || !r.ETA.Equal(time.UnixMilli(1000000000500)) {
		t.Errorf("round 0: %+v", r)
	}
	r = rounds[1]
	if r.Stderr != "chat" || r.Error != "" || r.ErrorBytes != 4 || r.ErrorSHA256() != hashOf("chat") || r.Signal != "killed" ||
		r.UserTime != 0 || r.MaxMemory != 0 || r.Incarnation != 0 || r.ExitCode != nil || r.Begun() ||
		!r.Progress.IsZero() || r.OutputSHA256() != hashOf("ok") {
		t.Errorf("round 1: %+v", r)
	}
	if r = rounds[2]; !r.Dropped || r.OutputBytes != 9 || r.OutputSHA256() != "" || r.ErrorSHA256() != "" {
		t.Errorf("round 2: %+v", r)
	}
}

func TestProgressText(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]struct {
		part       *float64
		text, full string
	}{
		"0.4 half done": {new(0.4), "half done", "40% half done"},
		"1":             {new(1.0), "", "100%"},
		"0.29":          {new(0.29), "", "29%"},
		"0.999 almost":  {new(0.999), "almost", "99% almost"},
		" 0  begun ":    {new(0.0), "begun", "0% begun"},
		"":              {nil, "", ""},
		"half":          {nil, "half", "half"},
		"7 of 9":        {nil, "7 of 9", "7 of 9"},
		"NaN x":         {nil, "NaN x", "NaN x"},
	} {
		far := task.ParseProgress(field)
		same := (far.Part == nil) == (want.part == nil) && (far.Part == nil || *far.Part == *want.part)
		if !same || far.Text != want.text || far.String() != want.full || far.IsZero() != (field == "") {
			t.Errorf("%q: %+v, %q", field, far, far)
		}
	}
}
