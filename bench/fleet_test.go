package main

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/bench/site"
)

// A tiny run does all that a large one does; its figures say nothing.
func TestLongFleet(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	args := []string{
		"fleet", "-conf", shippedConf, "-aof", "yes", "-workers", "5", "-slots", "2", "-queues", "2", "-tasks", "60", "-work", "0s,2ms", "-delay", "1ms", "-settle", "10ms",
		"-watch", "100ms",
	}
	if err := run(t.Context(), args, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	matches(t, out.String(),
		`5 workers of 2 slots, 1 servers, 1 managers, 2 queues; 1ms of delay each way`,
		`\| commands a second \| -?\d+\.\d\d \|`, `\| connections \| [1-9]\.\d \|`,
		`\| 0s \| \d+ \| - \| \d+ \|`, `\| 2ms \| \d+ \| \d+ % \| \d+ \|`, `\| \d+ / 15 / \d+ \| [01]\.\d{3} \|`,
	)
}

// Each task of a row is done by one worker, and counted.
func TestLoad(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"fleet", "-conf", shippedConf, "-workers", "3", "-tasks", "40", "-work", "1ms", "-settle", "1ms", "-watch", "1ms"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, 1)
	b.options, b.size = o, o.given.or(o.tables[0].size)
	f := &fleetRun{bench: b, tally: newTally(b)}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := f.loads[0]
	if total(l.perWorker) != 40 || total(l.perQueue) != 20 || l.took < 40*time.Millisecond/2/3 || l.used.Redis < 0 || l.used.Reads <= 0 {
		t.Errorf("%+v", l)
	}
}

func total(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}

// What goes over the line arrives whole, in order, and late.
func TestLine(t *testing.T) {
	t.Parallel()
	srv, err := site.StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	const delay = 20 * time.Millisecond
	l, err := newLine(t.Context(), srv.Socket(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	db := srv.Client(l.socket)
	defer func() { _ = db.Close() }()
	long := strings.Repeat("0123456789", 50_000)
	began := time.Now()
	if err := db.Set(t.Context(), "k", long, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*delay {
		t.Errorf("a command and its answer took %s, want at least %s", took, 2*delay)
	}
	if got, err := db.Get(t.Context(), "k").Result(); err != nil || got != long {
		t.Errorf("%d bytes came back, want %d: %v", len(got), len(long), err)
	}
}

func TestJain(t *testing.T) {
	t.Parallel()
	for want, shares := range map[float64][]float64{1: {3, 3, 3}, 0.25: {8, 0, 0, 0}, 0.9: {1, 2}, 0: {0, 0}} {
		if got := jain(shares); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", shares, got, want)
		}
	}
}
