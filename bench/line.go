package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
)

// line is a long way between workers and Redis: it passes on all that it gets, a while later.
type line struct {
	socket   string // where it listens
	target   string
	delay    time.Duration
	listener net.Listener
	cancel   context.CancelFunc
	flows    sync.WaitGroup
}

func newLine(ctx context.Context, target string, delay time.Duration) (*line, error) {
	dir, err := os.MkdirTemp("", "tdf-bench-line-")
	if err != nil {
		return nil, fmt.Errorf("directory of the line: %w", err)
	}
	l := &line{socket: filepath.Join(dir, "line.sock"), target: target, delay: delay}
	var lc net.ListenConfig
	if l.listener, err = lc.Listen(ctx, "unix", l.socket); err != nil {
		return nil, errors.Join(fmt.Errorf("listening for workers: %w", err), os.RemoveAll(dir))
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.flows.Go(func() { l.accept(ctx) })
	return l, nil
}

// close cuts all connections.
func (l *line) close() {
	l.cancel()
	_ = l.listener.Close()
	l.flows.Wait()
	_ = os.RemoveAll(filepath.Dir(l.socket))
}

func (l *line) accept(ctx context.Context) {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.flows.Go(func() { l.serve(ctx, near) })
	}
}

// serve passes on what one client and Redis say, until both have ended.
func (l *line) serve(ctx context.Context, near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := (&net.Dialer{}).DialContext(ctx, "unix", l.target)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })()
	var both sync.WaitGroup
	both.Go(func() { l.flow(ctx, near, far) })
	both.Go(func() { l.flow(ctx, far, near) })
	both.Wait()
}

// parcel is what arrived at a time.
type parcel struct {
	at   time.Time
	data []byte
}

// underWay is how many parcels may be on a line in one direction; more wait where they come from.
const underWay = 256

// flow passes on in one direction, and ends both when one side has ended.
func (l *line) flow(ctx context.Context, from, to net.Conn) {
	parcels := make(chan parcel, underWay)
	var sending sync.WaitGroup
	sending.Go(func() {
		for p := range parcels {
			timing.Pause(ctx, time.Until(p.at.Add(l.delay)))
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close()
			}
		}
		_ = to.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			parcels <- parcel{time.Now(), append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			break
		}
	}
	close(parcels)
	sending.Wait()
}
