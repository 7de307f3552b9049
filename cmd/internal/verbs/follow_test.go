package verbs

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// followed is a bench with one open task that may fail once, and who works on it.
func followed(t *testing.T) (*bench, *hand) {
	t.Helper()
	b := newBench(t)
	b.must("submit", "--program", "p", "--max-fails", "1")
	return b, &hand{t: t, store: b.store}
}

// A line is seen while the program still runs, and at the end all that was
// written, once: what came live, twice or overlapping, and the rest.
func TestFollow(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	run := b.start(t.Context(), "logs", "-f", "1")
	run.says(t, run.err, "round 0 of task 1 has not begun (the task is open); waiting")
	c := h.claim()
	h.send(c, "output", 0, "one\n")
	run.says(t, run.out, "one\n")
	h.send(c, "error", 0, "not this\n")
	h.send(c, "output", 2, "e\ntwo é"[:6]) // overlaps, and ends inside a character
	run.says(t, run.out, "one\ntwo")
	h.report(c, "output", "one\ntwo é\x00\xffthree\n", "error", "")
	run.says(t, run.out, "three\n") // before the server has judged
	wait.Never(t, 100*time.Millisecond, func() bool { return len(run.done) > 0 }, "it ends before the task")
	h.settle()
	run.ends(t, 0)
	run.wrote(t, "one\ntwo é\x00\xffthree\n")
	if out := b.must("logs", "-f", "1"); out != "one\ntwo é\x00\xffthree\n" {
		t.Errorf("after the end: %q", out)
	}
}

// The task is opened again: it goes on with the next round.
func TestFollowNextRound(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	c := h.claim()
	run := b.start(t.Context(), "logs", "-f", "1", "--stderr")
	h.send(c, "error", 0, "bad")
	run.says(t, run.out, "bad")
	h.report(c, "output", "x", "error", "bad luck\n")
	h.settle()
	run.says(t, run.err, "round 0 of task 1 is over; the task was opened again")
	c = h.claim()
	h.send(c, "error", 0, "so ")
	h.report(c, "output", "x", "error", "", "stderr", "so what\n")
	h.settle()
	run.ends(t, 0)
	run.wrote(t, "bad luck\nso what\n")
}

// What was left out is told on a line of its own, and how much.
func TestFollowGaps(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	c := h.claim()
	h.send(c, "output", 50, "middle") // what a reader before us has left
	run := b.start(t.Context(), "logs", "-f", "1")
	run.says(t, run.out, "[tdf: 50 bytes left out]\nmiddle")
	h.send(c, "output", 60, "later\n")
	run.says(t, run.out, "middle\n[tdf: 4 bytes left out]\nlater\n")
	h.report(c, "output", "head\n[tdf: 987 bytes left out]\nthe tail\n", "output_bytes", "1000", "error", "")
	h.settle()
	run.ends(t, 0)
	run.wrote(t, "[tdf: 50 bytes left out]\nmiddle\n[tdf: 4 bytes left out]\nlater\n[tdf: 925 bytes left out]\nthe tail\n")
}

// The beginning is worth a short wait where there are only chunks of a reader
// before us: the worker begins again.
func TestFollowWaitsForTheBeginning(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	c := h.claim()
	h.send(c, "output", 4, "two\n")
	run := b.start(t.Context(), "logs", "-f", "1")
	wait.Never(t, 300*time.Millisecond, func() bool { return run.out.String() != "" }, "it does not wait")
	h.send(c, "output", 0, "one\n")
	run.says(t, run.out, "one\ntwo\n")
	h.report(c, "output", "one\ntwo\n", "error", "")
	h.settle()
	run.ends(t, 0)
}

// What is known at the end of a short round is put together from all there is.
func TestFollowShortRound(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	c := h.claim()
	h.send(c, "output", 50, "middle") // the worker does not get to begin again
	run := b.start(t.Context(), "logs", "-f", "1")
	wait.Never(t, 300*time.Millisecond, func() bool { return run.out.String() != "" }, "it does not wait")
	h.report(c, "output", "head\n[tdf: 987 bytes left out]\nthe tail\n", "output_bytes", "1000", "error", "")
	h.settle()
	run.ends(t, 0)
	run.wrote(t, "head\n[tdf: 46 bytes left out]\nmiddle\n[tdf: 935 bytes left out]\nthe tail\n")
}

// With --round it ends with the round, which must be the present one.
func TestFollowOneRound(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	c := h.claim()
	h.send(c, "output", 0, "first\n")
	h.report(c, "output", "first\n", "error", "bad\n")
	h.settle()
	if r := b.run("logs", "-f", "1", "--round", "0"); r.code != 2 || !strings.Contains(r.err, "is in round 1") {
		t.Errorf("a round that is over: %+v", r)
	}
	run := b.start(t.Context(), "logs", "-f", "1", "--round", "1")
	h.report(h.claim(), "output", "second\n", "error", "")
	run.ends(t, 0)
	run.wrote(t, "second\n")
}

func TestFollowTaskThatNeverRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must("submit", "--program", "p", "--end-before", "1000")
	b.must("submit", "--program", "p")
	(&hand{t: t, store: b.store}).expire(1)
	if r := b.run("logs", "-f", "1"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "did not run") {
		t.Errorf("%+v", r)
	}
	for args, code := range map[string]int{"9": 2, "x": 2, "1 --json": 2, "1 --round -1": 2} {
		if r := b.run(append([]string{"logs", "--follow"}, strings.Fields(args)...)...); r.code != code {
			t.Errorf("%s: %+v, want %d", args, r, code)
		}
	}
}

func TestFollowEndsWithASignal(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, send := signalled(sig)
		run := b.start(ctx, "logs", "-f", "1")
		run.says(t, run.err, "has not begun")
		send()
		run.ends(t, code)
	}
	c := h.claim()
	ctx, send := signalled(syscall.SIGINT)
	run := b.start(ctx, "logs", "-f", "1")
	h.send(c, "output", 0, "one\n")
	run.says(t, run.out, "one\n")
	send()
	run.ends(t, 130)
}

// Redis goes away and comes back: it is said once each, and nothing is missing.
func TestFollowThroughAnOutage(t *testing.T) {
	t.Parallel()
	b, h := followed(t)
	c := h.claim()
	proxy := b.srv.Proxy(t)
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	run := b.start(t.Context(), "--set", "redis.host="+host, "--set", "redis.port="+port, "logs", "-f", "1")
	h.send(c, "output", 0, "one\n")
	run.says(t, run.out, "one\n")
	proxy.Down()
	run.says(t, run.err, "trying again")
	h.send(c, "output", 4, "two\n")
	proxy.Up()
	run.says(t, run.out, "one\ntwo\n")
	run.says(t, run.err, "redis answers again")
	h.report(c, "output", "one\ntwo\n", "error", "")
	h.settle()
	run.ends(t, 0)
	if n := strings.Count(run.err.String(), "trying again"); n != 1 {
		t.Errorf("the outage is told %d times", n)
	}
}
