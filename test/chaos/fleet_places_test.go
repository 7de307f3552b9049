package chaos

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// The workers with a place of their own, where that can be had.
const (
	diskWorker = "worker-disk" // everything that it writes is on a small disk
	wireWorker = "worker-wire" // its host is a network namespace
)

// places are the disk that can be filled and the wire that can be cut.
type places struct {
	disk       string // empty if there is none
	wire       *hosttest.Wire
	host, port string // of Redis, at the far end of the wire
}

// findPlaces makes what can be made here, and notes in the report what cannot.
func findPlaces(t *testing.T, sp *storetest.Space, r *report) places {
	t.Helper()
	p := places{}
	if err := p.connect(t, sp); err != nil {
		r.leaveOut(networkCut, err)
	}
	// After the wire: what is mounted from here on only this thread sees.
	disk, err := hosttest.TrySmallDisk(t, "12m")
	if err != nil {
		r.leaveOut(diskFull, err)
	}
	p.disk = disk
	return p
}

// connect makes the wire, with Redis at its other end.
func (p *places) connect(t *testing.T, sp *storetest.Space) error {
	t.Helper()
	wire, err := hosttest.NewWire(t)
	if errors.Is(err, hosttest.ErrNotPermitted) {
		return err
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := wire.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	p.wire = wire
	p.host, p.port, err = net.SplitHostPort(redistest.NewProxyOn(t, l, "unix", sp.Server.Socket()).Addr())
	if err != nil {
		t.Fatal(err)
	}
	return nil
}

// onDisk is the command of the worker whose disk can be filled.
func (p *places) onDisk(command ...string) []string {
	if p.disk == "" {
		return command
	}
	for key, value := range map[string]string{
		"program_dir": filepath.Join(p.disk, "programs"), "spool_dir": filepath.Join(p.disk, "spool"),
		"temp_dir": p.disk, "disk_reserve": "1MiB",
	} {
		command = append(command, "--set", fmt.Sprintf("worker.%s=%s", key, value))
	}
	return command
}

// overWire is the command of the worker whose network can be cut.
func (p *places) overWire(command ...string) []string {
	if p.wire == nil {
		return command
	}
	return append(append(p.wire.Enter(), command...), "--set", "redis.host="+p.host, "--set", "redis.port="+p.port)
}
