package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
)

// A server notices that Redis has lost changes, opens a new epoch, and the round
// that ran is run again at no cost of the task, once its worker's lease is over.
func TestLostHistory(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	if err := sp.Store.PublishLease(t.Context(), statemachine.Second); err != nil {
		t.Fatal(err)
	}
	s, l := launch(t, sp, leased)
	tick := patient(s)
	reader := sp.Dial(t)
	w := sp.Register(t, "w")
	ids := sp.Open(t, storetest.Spec(), storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	back := sp.Snapshot(t)
	sp.Open(t, storetest.Spec())
	want, _ := sp.Store.History()
	awaitSeen(t, s, want)
	back()
	wait.Eventually(t, 10*time.Second, func() bool {
		tick()
		task, err := reader.Task(context.WithoutCancel(t.Context()), ids[0])
		return err == nil && task.State == statemachine.Open && task.Releases == 1 && task.Losses == 0
	}, "the round is not opened again: %s", l)
	if text := l.String(); strings.Count(text, "redis has lost at least 1 changes") != 1 {
		t.Errorf("the loss is not said once:\n%s", text)
	}
	if got := sp.Open(t, storetest.Spec())[0]; got <= 1_000_000 {
		t.Errorf("the next id is %d", got)
	}
}

func awaitSeen(t *testing.T, s *Server, want conn.History) {
	t.Helper()
	wait.Eventually(t, 5*time.Second, func() bool {
		seen, _ := s.store.History()
		return !seen.Before(want)
	}, "the server has not seen %v", want)
}

// What a server has seen outlives it, if there is a file for that.
func TestHistoryFile(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	file := filepath.Join(t.TempDir(), "new", "history")
	kept := setting(t, "history_file="+file)
	back := sp.Snapshot(t)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	first, _ := newServer(t, sp, kept)
	pass(t, first)
	first.history.save()
	back()
	second, l := newServer(t, sp, kept)
	if _, _, err := second.pass(t.Context()); !errors.Is(err, conn.ErrHistory) || !second.history.watch(t.Context(), err) {
		t.Fatalf("the loss goes unnoticed: %v", err)
	}
	pass(t, second)
	if !strings.Contains(l.String(), "redis has lost at least 2 changes") {
		t.Errorf("log: %s", l)
	}
	if third, _ := newServer(t, sp, func(o *options) { o.HistoryFile = "" }); pass(t, third) != 0 {
		t.Error("who knows nothing of it is held up")
	}
}

// A file of another Redis says nothing; one that cannot be read or written is
// refused at the start.
func TestHistoryFileOfOthers(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	file := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(file, []byte("elsewhere ns\n1 500 500\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, l := newServer(t, sp, func(o *options) { o.HistoryFile = file })
	pass(t, s)
	if seen, _ := s.store.History(); seen.Seq != 0 || !strings.Contains(l.String(), "another Redis or namespace") {
		t.Errorf("seen %v, log %s", seen, l)
	}
	for _, name := range []string{filepath.Join(file, "below"), t.TempDir()} {
		opt := fromConfig(config.Defaults().Server)
		opt.Name, opt.store, opt.HistoryFile = "server", sp.Store, name
		if _, err := assemble(opt); !errors.Is(err, errOption) {
			t.Errorf("history file %s: %v", name, err)
		}
	}
}

// An empty or damaged file is no new beginning: the server says what to do, and leaves the file as it is.
func TestDamagedHistoryFile(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	file := filepath.Join(t.TempDir(), "history")
	s, _ := newServer(t, sp, func(o *options) { o.HistoryFile = file })
	place := s.history.place
	for _, text := range []string{
		"", "\n", place, place + "\n", place + "\nnonsense\n", place + "\n1 20", place + "\n1 2000 12 abcd", "\x00\x00\x00\x00", "elsewhere\x00\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		opt := fromConfig(config.Defaults().Server)
		opt.Name, opt.store, opt.HistoryFile = "server", sp.Store, file
		_, err := assemble(opt)
		if !errors.Is(err, errOption) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "put a copy of it back, or delete it") {
			t.Errorf("history file %q: error %v, want one that names the file and the remedy", text, err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("history file %q has become %q, error %v", text, now, err)
		}
	}
}

// What could not be brought to the disk is not there after a crash: the file stays as it was, and is written again.
func TestHistoryFileIsSynced(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	file := filepath.Join(t.TempDir(), "history")
	s, l := newServer(t, sp, func(o *options) { o.HistoryFile = file })
	sp.Open(t, storetest.Spec())
	pass(t, s)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hosttest.WithoutSync(t, s.history.save)
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file was %q and is %q, error %v", before, after, err)
	}
	if !strings.Contains(l.String(), "the history was not saved") {
		t.Errorf("log: %s", l)
	}
	s.history.save()
	if after, err := os.ReadFile(file); err != nil || string(after) == string(before) {
		t.Errorf("the file is still %q, error %v", after, err)
	}
}
