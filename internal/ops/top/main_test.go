package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the tests begin.
var start = time.Date(2026, 3, 4, 14, 0, 0, 0, time.UTC)

// script is a source and a clock that say what a test wants.
type script struct {
	snapshot Snapshot
	err      error
	now      time.Time
	rests    []time.Duration
}

// scripted makes a screen of 100 by 30 that the script feeds.
func scripted() (*script, *screen) {
	sc := &script{snapshot: sample(), now: start}
	f := &feed{
		ask:  func() (Snapshot, error) { return sc.snapshot, sc.err },
		wait: func(d time.Duration) bool { sc.rests = append(sc.rests, d); return true },
		now:  func() time.Time { return sc.now },
		stop: func() {},
	}
	s := newScreen(f, Options{Interval: 2 * time.Second})
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	return sc, s
}

// drive runs commands until one is of a kind that the screen does not ask for.
func drive(s *screen, cmd tea.Cmd) tea.Cmd {
	if cmd != nil {
		_, cmd = s.Update(cmd())
	}
	return cmd
}

// keys presses keys by their names and returns the last command.
func keys(s *screen, names ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, name := range names {
		_, cmd = s.Update(press(name))
	}
	return cmd
}

func press(name string) tea.KeyPressMsg {
	special := map[string]rune{
		"tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome,
		"end": tea.KeyEnd, "esc": tea.KeyEscape, "enter": tea.KeyEnter, "backspace": tea.KeyBackspace,
	}
	if name == "ctrl+c" {
		return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	}
	if name == "shift+tab" {
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	}
	if code, ok := special[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// seen is the screen without styles.
func seen(s *screen) string { return ansi.Strip(strings.Join(s.lines(), "\n")) + "\n" }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: -want +got (renew with -update)\n%s", path, diff)
	}
}

var errAway = errors.New("dial tcp 127.0.0.1:6379: connect: connection refused")

// sample is a snapshot with texts of every awkward kind.
func sample() Snapshot {
	s := Snapshot{Redis: "127.0.0.1:6379", Done: 400, Failed: 20}
	s.Overview = manager.Overview{
		Namespace: "tdf", At: start,
		Counts: manager.Counts{"blocked": 1, "open": 120, "running": 6, "succeeded": 380, "failed": 20},
		Queues: []task.Queue{
			queue("default", task.Unlimited, task.Unlimited, 300), queue("licensed", task.AtMost(8), task.AtMost(2), 100),
			queue("a-queue-with-quite-a-long-name.of-some-department", task.AtMost(0), task.AtMost(0), 0),
		},
		Programs: map[int64]string{},
		Failures: []manager.Failure{
			failure(417, "sum", start.Add(-3*time.Second), task.Round{
				Worker: "w3", Class: "program",
				Error: "\n exit status 2: \x1b[2Jcannot read the input file of the second step\nTraceback\n",
			}),
			failure(416, "계산하기", start.Add(-2*time.Hour), task.Round{
				Worker: "작업자-1", Class: "host", Error: "ディスクがいっぱいです \u202e",
			}),
			failure(9, "sum", time.Time{}, task.Round{Class: "time"}),
		},
	}
	first, licensed := &s.Queues[0], &s.Queues[1]
	first.Waiting, first.Running, first.Oldest = 100, 4, start.Add(-65*time.Second)
	licensed.Waiting, licensed.Running, licensed.Oldest, licensed.Paused = 20, 2, start.Add(-26*time.Hour), true
	for i := range int64(12) {
		w := worker(fmt.Sprintf("w%d", i))
		w.Node, w.State, w.Slots, w.Heartbeat = fmt.Sprintf("node-%d", i/4), "alive", 4, start.Add(-time.Duration(i)*time.Second)
		if i < 3 {
			w.Busy, w.Tasks = 2, []int64{500 + i, 600 + i}
			s.Programs[500+i], s.Programs[600+i] = "sum", "mul\ttable"
		}
		s.Workers = append(s.Workers, w)
	}
	stopped := worker("gone")
	stopped.State = task.WorkerStopped
	s.Workers = append(s.Workers, stopped)
	return s
}

func failure(id int64, program string, at time.Time, round task.Round) manager.Failure {
	t := &task.Task{ID: id}
	t.Program = program
	return manager.Failure{Task: t, Round: round, At: at}
}

func queue(name string, threads, perNode task.Limit, done int64) task.Queue {
	q := task.ParseQueue(name, nil).Empty()
	q.Threads, q.MaxThreads, q.Ended[statemachine.Succeeded] = threads, perNode, done
	return q
}

func worker(name string) task.Worker { return task.Worker{Registration: task.Registration{Name: name}} }

// steady is a source that always has the sample.
func steady(context.Context) (Snapshot, error) { return sample(), nil }
