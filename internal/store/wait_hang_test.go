package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// TestWaitEnds: Redis is frozen, or the way to it, while a command waits in it, and
// the connection stays open. Who waits must learn of it all the same.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	far, proxy := through(t, storetest.New(t))
	far.Where.ReadTimeout = time.Second // enough for a busy machine
	st := far.Dial(t, conn.WithRetries(-1))
	if _, err := st.WaitServer(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	proxy.Hang()
	defer proxy.Release()
	ended := make(chan error, 1)
	go func() {
		_, err := st.WaitServer(t.Context(), time.Second)
		ended <- err
	}()
	if err := await.Receive(t, 10*time.Second, ended, "it waits for ever"); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("error %v", err)
	}
}
