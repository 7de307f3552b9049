package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/crewtest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const limit = 3 * time.Minute

func startCrew(tb testing.TB) crewtest.Place {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	place := crewtest.NewPlace(tb)
	crewtest.Start(tb, crewtest.Crew{Dir: dir, Place: place, Workers: []string{"worker"}})
	return place
}

// TestSources is case A51. That the worker survives the bad sources is seen by
// the tasks after them, and by crewtest.
func TestSources(t *testing.T) {
	t.Parallel()
	place := startCrew(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	config := place.Config(t, "manager.cfg")
	var out strings.Builder
	if err := run(ctx, []string{"-pause", "0", "-suffix", "", config}, &out, io.Discard); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	m := manager.New(place.Site(t), "looker", manager.Options{})
	const perPass = 20
	for id := int64(1); id <= 2*perPass; id++ {
		task, err := m.Task(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		check(t, task, id > perPass)
	}
	if n := strings.Count(out.String(), "\nok "); n != 2*perPass {
		t.Errorf("%d lines of the table are ok, want %d:\n%s", n, 2*perPass, out.String())
	}
}

func check(t *testing.T, task *task.Task, second bool) {
	t.Helper()
	got := outcomeOf(task)
	bad := strings.HasSuffix(task.Program, "-invalid") || strings.HasSuffix(task.Program, "-non-existing")
	switch {
	case task.State != "archived" || task.Round != 0:
		t.Errorf("task %d is %s in round %d", task.ID, task.State, task.Round)
	case bad && (got.state != "failed" || task.Fails != 1 || !strings.Contains(got.reason, "could not fetch program '"+task.Program+"' at worker 'worker'")):
		t.Errorf("task %d (%s): %+v, fails=%d", task.ID, task.Program, got, task.Fails)
	case !bad && (got.state != "succeeded" || got.lines != 2 || got.fetched == second || got.reason != ""):
		t.Errorf("task %d (%s): %+v", task.ID, task.Program, got)
	}
}

// TestDifferenceIsSeen makes all sources the wrong ones.
func TestDifferenceIsSeen(t *testing.T) {
	t.Parallel()
	place := startCrew(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	m := manager.New(place.Site(t), "m", manager.Options{})
	all := []trial{{program: "p", source: "rsync:run.sh", input: "0", want: outcome{state: "succeeded", lines: 3, fetched: true}}}
	var out strings.Builder
	wrong, err := try(ctx, m, &out, all, 1)
	if err != nil || wrong != 1 || !strings.Contains(out.String(), "WRONG") {
		t.Errorf("%v, %d wrong:\n%s", err, wrong, out.String())
	}
}

func TestMeets(t *testing.T) {
	t.Parallel()
	want := outcome{state: "failed", fetched: true, reason: "no such file"}
	for got, ok := range map[outcome]bool{
		{state: "failed", fetched: true, reason: "open x: no such file"}:           true,
		{state: "failed", fetched: true, reason: "refused"}:                        false,
		{state: "failed", fetched: false, reason: "no such file"}:                  false,
		{state: "succeeded", fetched: true, reason: "no such file"}:                false,
		{state: "failed", fetched: true}:                                           false,
		{state: "failed", fetched: true, lines: 2, reason: "open x: no such file"}: false,
	} {
		if got.meets(want) != ok {
			t.Errorf("%+v meets %+v: %v", got, want, !ok)
		}
	}
	if (outcome{state: "succeeded", reason: "noise"}).meets(outcome{state: "succeeded"}) {
		t.Error("an error that was not expected goes unseen")
	}
}

func TestSiteIsRemoved(t *testing.T) {
	t.Parallel()
	s, err := openSite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the sources is left: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for args, say := range map[string]string{
		"":                      "expecting 1 argument (0 given)",
		"a b":                   "expecting 1 argument (2 given)",
		"-pause x manager.cfg":  "-pause=x",
		"-pause 61 manager.cfg": "-pause=61",
		"-nothing manager.cfg":  "nothing",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, want a usage error that says %q", args, err, say)
		}
	}
}
