package redisfaults

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// E3: Redis has no memory left. Nothing new is opened, and the error says what to
// do; what runs keeps its lease and is recorded; with room again all goes on.
func TestMemoryIsFull(t *testing.T) {
	t.Parallel()
	srv := durable(t)
	tm := newTeam(t, storetest.Where(srv), func(o *server.Options) { o.WorkerTimeout = inEarnest(4*time.Second, 15*time.Second) })
	release := tm.ledger.gate()
	var running []int64
	for range 3 {
		id, err := tm.open(t.Context(), job("waits", ""))
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, id)
	}
	for _, id := range running {
		tm.await(t, id, statemachine.Running)
	}
	srv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	begun := time.Now()
	_, err := tm.manager.Submit(t.Context(), job("ok", ""))
	if !errors.Is(err, task.ErrUnreachable) || !strings.Contains(err.Error(), " is out of memory: OOM ") {
		t.Errorf("open: %v", err)
	}
	t.Logf("an open is refused after %.1f s: %v", time.Since(begun).Seconds(), err)
	hold(t, inEarnest(time.Second, 10*time.Second)) // together longer than a lease
	close(release)
	tm.ledger.ended(t, len(running))
	srv.Do(t, "CONFIG", "SET", "maxmemory", "0")
	tm.recovers(t, "after memory was full", time.Now(), restartBar)
	tm.settled(t)
	for _, id := range running {
		if task, err := tm.store.Task(t.Context(), id); err != nil || task.Round != 0 {
			t.Errorf("task %d was run again: %+v, %v", id, task, err)
		}
	}
}

// E7: the disk of Redis is full.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	srv, dir := onSmallDisk(t, "16m")
	tm := newTeam(t, storetest.Where(srv))
	stop := tm.load(t)
	filler := hosttest.FillDisk(t, dir)
	wait.Eventually(t, restartBar, func() bool { return strings.Contains(tm.log.String(), "MISCONF Errors writing to the AOF file") },
		"nobody notices")
	hold(t, inEarnest(time.Second, 20*time.Second))
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	tm.recovers(t, "after the disk of Redis was full", time.Now(), restartBar)
	stop()
	tm.settled(t)
}

// onSmallDisk starts a server that keeps an append-only file, written each second, on a file system of that size, which ends
// with the process. It returns where that is seen from outside. Mounting it needs root.
func onSmallDisk(t *testing.T, size string) (srv *redistest.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	try := exec.CommandContext(t.Context(), "unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", dir)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v %s", err, out)
	}
	srv = redistest.Start(t,
		redistest.WithWrapper("unshare", "--mount", "--propagation", "private", "sh", "-c",
			`mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"`, "sh", size, dir),
		redistest.WithConfig("dir", dir), redistest.WithConfig("appendonly", "yes"), redistest.WithConfig("appendfsync", "everysec"),
		redistest.WithConfig("auto-aof-rewrite-percentage", "0"))
	return srv, filepath.Join("/proc", strconv.Itoa(srv.PID()), "root", dir)
}
