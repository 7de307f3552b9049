package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a lock held by another process is tried again; flock
// itself cannot be interrupted by a context.
const lockPoll = 20 * time.Millisecond

// keyedLocks queues the goroutines of one process, one key at a time, so that
// only one of them polls the file lock.
type keyedLocks struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	turn chan struct{} // holds one token while the lock is free
	uses int
}

func newKeyedLocks() *keyedLocks { return &keyedLocks{held: map[string]*keyedLock{}} }

func (k *keyedLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	l := k.held[key]
	if l == nil {
		l = &keyedLock{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		k.held[key] = l
	}
	l.uses++
	k.mu.Unlock()
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{}; k.release(key, l) }, nil
	case <-ctx.Done():
		k.release(key, l)
		return nil, context.Cause(ctx)
	}
}

func (k *keyedLocks) release(key string, l *keyedLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.uses--; l.uses == 0 {
		delete(k.held, key)
	}
}

// lock takes the program's lock against goroutines and processes. The kernel
// frees it when its holder dies.
func (f *Fetcher) lock(ctx context.Context, program string) (unlock func(), err error) {
	leave, err := f.locks.lock(ctx, program)
	if err != nil {
		return nil, err
	}
	for {
		file, err := f.tryFlock(program)
		if err == nil {
			return func() { _ = file.Close(); leave() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			leave()
			return nil, err
		}
		select {
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// tryFlock takes the file lock or answers EWOULDBLOCK. Lock files stay: to
// remove one while another process waits for it would make two locks of it.
func (f *Fetcher) tryFlock(program string) (*os.File, error) {
	file, err := f.root.OpenFile(lockDir+"/"+program, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock program '%s': %w", program, err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock program '%s': %w", program, err)
	}
	return file, nil
}
