package frame

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWithin(t *testing.T) {
	t.Parallel()
	why, broken := errors.New("interrupted"), errors.New("broken")
	for name, c := range map[string]struct {
		interrupt error
		limit     time.Duration
		measure   func(context.Context) error
		want      string
	}{
		"in time":     {nil, time.Hour, func(context.Context) error { return nil }, ""},
		"it fails":    {nil, time.Hour, func(context.Context) error { return broken }, "broken"},
		"too long":    {nil, time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return broken }, "-limit=1ms is over"},
		"interrupted": {why, time.Hour, func(ctx context.Context) error { return ctx.Err() }, "interrupted"},
		"just done":   {why, time.Hour, func(context.Context) error { return nil }, ""},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.interrupt != nil {
			cancel(c.interrupt)
		}
		if err := Within(ctx, c.limit, c.measure); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		cancel(nil)
	}
}

func TestAtLeastOne(t *testing.T) {
	t.Parallel()
	if err := AtLeastOne(map[string]int{"tasks": 1, "rounds": 7}); err != nil {
		t.Error(err)
	}
	err := AtLeastOne(map[string]int{"tasks": 1, "rounds": 0})
	if err == nil || err.Error() != "-rounds=0: must be at least 1" {
		t.Error(err)
	}
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "figures.json")
	if err := WriteJSON(file, map[string]int{"n": 7}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var figures map[string]int
	if err != nil || json.Unmarshal(text, &figures) != nil || figures["n"] != 7 || !strings.HasSuffix(string(text), "}\n") {
		t.Errorf("%q, %v", text, err)
	}
	if err := WriteJSON(file, func() {}); err == nil {
		t.Error("no error of what is no JSON")
	}
}
