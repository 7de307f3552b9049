package store_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// A master that has become a replica still answers scripts that write nothing. That
// no replica can confirm them is as good as a master that is not there.
func TestDemotedMaster(t *testing.T) {
	t.Parallel()
	demoted, master := redistest.Start(t), redistest.Start(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	sp := storetest.On(t, demoted)
	where := sp.Where
	where.Durability, where.ReplicationTimeout = config.DurabilityHA, 300*time.Millisecond
	st, err := store.Dial(where, sp.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Rules(t.Context(), ""); err != nil { // a connection of when it was the master
		t.Fatal(err)
	}
	demoted.Do(t, "REPLICAOF", host, port)
	_, err = st.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "r", Max: 1, Incarnation: 77}) // of no session
	if !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("error %v, want one that is temporary", err)
	}
}
