package httpapi

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// keep has a worker at work that keeps programs, which somebody has put there by hand.
func keep(t *testing.T, sp *storetest.Space, name string, programs ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, program := range programs {
		if err := os.MkdirAll(filepath.Join(dir, program), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, program, "run.sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w, err := worker.New(storetest.At(t, sp.Where, sp.Namespace, nil), worker.Options{Name: name, Settings: worker.Settings{
		Node: "of-" + name, ProgramDir: dir, Slots: 1, Containment: "group", SpoolDir: t.TempDir(), TempDir: t.TempDir(),
		DiskReserve: -1, KillGrace: 100 * time.Millisecond,
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := wait.Receive(t, time.Minute, done, "the worker does not stop"); err != nil {
			t.Error(err)
		}
	})
	wait.Eventually(t, time.Minute, func() bool {
		found, _, err := sp.Store.Worker(ctx, name)
		return err == nil && found.State.Alive()
	}, "the worker does not register")
}

// Workers are asked which programs they keep, all or some of them; what was put there by hand is not removed.
func TestPrograms(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	keep(t, c.sp, "a", "sum", "count")
	keep(t, c.sp, "b", "sum")
	for _, tt := range []struct {
		method, path string
		keeps        []string // worker and program
	}{
		{http.MethodGet, "/programs", []string{"a count", "a sum", "b sum"}},
		{http.MethodGet, "/programs?worker=b", []string{"b sum"}},
		{http.MethodGet, "/programs?node=of-a&worker=a,b", []string{"a count", "a sum"}},
		{http.MethodGet, "/programs/count", []string{"a count"}},
		{http.MethodDelete, "/programs/sum?dry_run=true", []string{"a sum kept", "b sum kept"}},
		{http.MethodDelete, "/programs/sum?worker=a", []string{"a sum kept"}},
		{http.MethodDelete, "/programs?unused_for=1&dry_run=true", nil},
		{http.MethodDelete, "/programs?unused_for=1", nil},
	} {
		var keeps []string
		for _, s := range want[[]task.Stock](t, c.do(t, tt.method, tt.path, ""), http.StatusOK) {
			if s.Silent || s.Error != "" {
				t.Errorf("%s: %+v", tt.path, s)
			}
			for _, v := range s.Versions {
				one := s.Worker + " " + v.Program
				if strings.Contains(v.Kept, "put there by hand") {
					one += " kept"
				}
				keeps = append(keeps, one)
			}
		}
		if slices.Sort(keeps); !slices.Equal(keeps, tt.keeps) {
			t.Errorf("%s %s: %q, want %q", tt.method, tt.path, keeps, tt.keeps)
		}
	}
	for _, tt := range []struct {
		method, path string
		status       int
		detail       string
	}{
		{http.MethodGet, "/programs/none", 404, "no worker that was asked keeps none"},
		{http.MethodDelete, "/programs/sum@0000", 404, "keeps sum@0000"},
		{http.MethodGet, "/programs/sum@xyz", 422, "NAME@HEX"},
		{http.MethodGet, "/programs?worker=none", 404, "none"},
		{http.MethodGet, "/programs?node=none", 404, "no such node"},
		{http.MethodGet, "/programs?timeout=21", 422, "query.timeout"},
		{http.MethodDelete, "/programs", 422, "query.unused_for"},
	} {
		wantProblem(t, c.do(t, tt.method, tt.path, ""), tt.status, tt.detail)
	}
}

// A worker that does not answer in time is silent, and what it keeps is not known.
func TestProgramsOfASilentWorker(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenRead)
	c.sp.Register(t, "mute")
	for _, path := range []string{"/programs?timeout=1", "/programs/sum?timeout=1"} {
		got := want[[]task.Stock](t, c.do(t, http.MethodGet, path, ""), http.StatusOK)
		if len(got) != 1 || got[0].Worker != "mute" || !got[0].Silent {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
