package top

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"asked for": true, "no terminal": false} {
		var out bytes.Buffer
		if err := Run(t.Context(), Options{In: strings.NewReader(""), Out: &out, Source: steady, Once: once}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden(t, "once", out.String())
	}
}

func TestOnceFails(t *testing.T) {
	t.Parallel()
	err := Run(t.Context(), Options{Out: io.Discard, Once: true, Source: func(context.Context) (Snapshot, error) { return Snapshot{}, errAway }})
	if !errors.Is(err, errAway) {
		t.Errorf("error %v", err)
	}
	r, w := io.Pipe()
	_ = r.Close()
	if err := Run(t.Context(), Options{Out: w, Once: true, Source: steady}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

func hang(ctx context.Context) (Snapshot, error) {
	<-ctx.Done()
	return Snapshot{}, ctx.Err()
}

func TestOnceEnds(t *testing.T) {
	t.Parallel()
	err := Run(t.Context(), Options{Out: io.Discard, Once: true, Timeout: time.Millisecond, Source: hang})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 1ms") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, Options{Out: io.Discard, Once: true, Source: hang}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestZeroTime: a snapshot without a time of its own is one of the moment it came.
func TestZeroTime(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Run(t.Context(), Options{
		Out: &out, Source: func(context.Context) (Snapshot, error) { return Snapshot{}, nil },
		Now: func() time.Time { return start.Add(time.Minute) },
	})
	if err != nil || !strings.Contains(out.String(), "\ntime 14:01:00\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestVariable(t *testing.T) {
	t.Parallel()
	o := Options{Environ: []string{"A=1", "AB=2", "A=3", "B"}}
	if o.variable("A") != "3" || o.variable("B") != "" || o.variable("AB") != "2" {
		t.Errorf("%q %q %q", o.variable("A"), o.variable("B"), o.variable("AB"))
	}
}
