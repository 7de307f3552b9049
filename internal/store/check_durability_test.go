package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// checked is what a start says of a Redis from which a durability is demanded.
func checked(t *testing.T, where config.Redis, durability string) (conn.ServerInfo, *conn.SetupError) {
	t.Helper()
	where.Durability = durability
	st, err := store.Dial(where, "ns")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	info, err := st.Check(t.Context())
	var refused *conn.SetupError
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("durability=%s: %v", durability, err)
	}
	return info, refused
}

// demands checks that a start refuses, or with an empty setting that it does not.
func demands(t *testing.T, where config.Redis, durability, setting, value, remedy string) conn.ServerInfo {
	t.Helper()
	info, e := checked(t, where, durability)
	switch {
	case setting == "" && e != nil:
		t.Errorf("durability=%s is refused: %v", durability, e)
	case setting != "" && e == nil:
		t.Errorf("durability=%s is accepted, want %s to be refused", durability, setting)
	case e != nil && (!strings.HasPrefix(e.Setting, setting) || e.Value != value || !strings.Contains(e.Remedy, remedy)):
		t.Errorf("durability=%s: %v, want %s = %s and %q", durability, e, setting, value, remedy)
	}
	return info
}

// Without an append-only file a start warns, and refuses to call that safe.
func TestCheckDurability(t *testing.T) {
	t.Parallel()
	where := storetest.Where(redistest.Start(t))
	if info := demands(t, where, config.DurabilityFast, "", "", ""); len(info.Warnings) != 1 {
		t.Errorf("warnings %q", info.Warnings)
	}
	demands(t, where, config.DurabilitySafe, "appendonly of ", "no", "set it to yes")
	demands(t, where, config.DurabilityHA, "[redis] durability", "ha", "set sentinel_master")

	where = storetest.Where(redistest.Start(t, redistest.WithConfig("appendonly", "yes")))
	if info := demands(t, where, config.DurabilityFast, "", "", ""); len(info.Warnings) != 0 {
		t.Errorf("warnings %q", info.Warnings)
	}
	demands(t, where, config.DurabilitySafe, "appendfsync of ", "everysec", "set it to always")

	where = storetest.Where(redistest.Start(t, redistest.WithAppendOnly()))
	if info := demands(t, where, config.DurabilitySafe, "", "", ""); len(info.Warnings) != 0 {
		t.Errorf("warnings %q", info.Warnings)
	}
}

// Where CONFIG is forbidden, a start says what it could not check.
func TestCheckDurabilityWithoutPermission(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithAppendOnly())
	srv.Do(t, "ACL", "SETUSER", "tdf", "on", ">secret", "~*", "&*", "+@all", "-config")
	where := storetest.Where(srv)
	where.Username, where.Password = "tdf", "secret"
	info := demands(t, where, config.DurabilitySafe, "", "", "")
	if len(info.Warnings) != 1 || !strings.Contains(info.Warnings[0], "appendfsync was not checked") {
		t.Errorf("warnings %q", info.Warnings)
	}
}
