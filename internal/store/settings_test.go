package store_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// The Redis, its login and its database are those that [redis] names. The one here
// has a password, so that no other one is taken for it.
func TestSettingsOfThePlace(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithPassword("canary"))
	user := srv.Limited(t, "ns")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, port := "host="+srv.Socket(), strconv.Itoa(srv.Port())
	for name, settings := range map[string][]string{
		"host": {socket, "port=1", "password=canary"}, "port": {"host=127.0.0.1", "port=" + port, "password=canary"},
		"password": {socket, "port=1", "password=canary"}, "password_file": {socket, "port=1", "password_file=" + file},
		"username": {socket, "port=1", "username=" + user.Name, "password=" + user.Password},
		"db":       {socket, "port=1", "password=canary", "db=3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, err := store.Dial(storetest.Redis(t, settings...), "ns", conn.WithRetries(-1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			open(t, st)
			if all := srv.Do(t, "INFO", "keyspace"); name == "db" && !strings.Contains(all.(string), "db3:") {
				t.Errorf("the task is in another database: %v", all)
			}
		})
	}
}

// What Redis must keep is checked at the start, and a replica waited for as long as
// [redis] says.
func TestSettingsOfDurability(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	safe, err := store.Dial(storetest.Redis(t, "host="+srv.Socket(), "durability=safe"), "ns", conn.WithRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = safe.Close() })
	if _, err := safe.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "appendonly") {
		t.Errorf("a Redis that keeps nothing is called safe: %v", err)
	}
	waits := make(chan string, 100)
	srv.Monitor(t, func(words []string) {
		if strings.EqualFold(words[0], "wait") {
			waits <- words[len(words)-1]
		}
	})
	place := storetest.Redis(t, "host="+srv.Socket(), "replication_timeout=0.05")
	place.Durability = config.DurabilityHA // a configuration has it with Sentinel only
	st, err := store.Dial(place, "ns", conn.WithRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	_, _ = st.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}}) // there is no replica
	if ms := <-waits; ms != "50" {
		t.Errorf("a replica is waited for %s ms, want 50", ms)
	}
}
