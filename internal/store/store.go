// Package store keeps tasks in Redis. It is the only importer of go-redis.
//
// Package statemachine decides; this package compares and moves. Each mutation is
// one Lua script, beside its caller, with KEYS, ARGV and Returns in its header. A
// script compares first and writes after. Clients repeat a call whose reply was lost;
// the script then answers as if it had been sent once. DESIGN.md in this directory
// says which guarantees follow, and why.
package store

import (
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/blobs"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
)

// Store is one namespace in one Redis, with all its rooms. It is safe for use by
// many goroutines.
type Store struct {
	*conn.Conn
	*tasks.Tasks
	*fleet.Fleet
	*fleet.Access
	*plans.Plans
	*upkeep.Upkeep
	*blobs.Blobs
}

// rooms are the scripts of all rooms.
var rooms = []conn.Scripts{tasks.Scripts, fleet.Scripts, plans.Scripts, upkeep.Scripts, blobs.Scripts}

// Dial makes a Store on the Redis that where describes. It connects lazily:
// the first error of an unreachable Redis comes from the first call, usually
// [conn.Conn.Check]. The caller closes the Store.
func Dial(where config.Redis, namespace string, opts ...conn.Option) (*Store, error) {
	c, err := conn.Dial(where, namespace, rooms, opts...)
	if err != nil {
		return nil, err
	}
	t := &tasks.Tasks{Conn: c}
	return &Store{
		Conn: c, Tasks: t, Fleet: fleet.New(c), Access: &fleet.Access{Conn: c},
		Plans: plans.New(c, t), Upkeep: upkeep.New(c, t), Blobs: blobs.New(c, t),
	}, nil
}
