package store

import (
	"context"
	"fmt"
	"time"
)

// ManagerAllowance is how long a manager that says nothing counts as alive.
const ManagerAllowance = 15 * time.Second

// Presence says that a manager is alive; it is repeated at least every five
// seconds.
type Presence struct {
	// Instance is unique for the process, Name is for people.
	Instance, Name string
	// StandIn marks the ready-made manager, which must not handle what a
	// project's own manager waits for.
	StandIn bool
	// Force lets a stand-in run beside a project's own manager.
	Force bool
}

// Appear records the presence. For a stand-in it returns an error matching
// [ErrManagerAlive] while a project's own manager is alive, unless forced.
func (s *Store) Appear(ctx context.Context, p Presence) error {
	kind, refuse := "own", ""
	if p.StandIn {
		kind, refuse = "standin", flag(!p.Force)
	}
	v, err := s.run(ctx, "presence", []string{s.keys.meta(), s.keys.managers()},
		p.Instance, kind, p.Name, int(ManagerAllowance.Seconds()), refuse)
	if err != nil {
		return err
	}
	if name, ok := v.(string); ok && name != "" {
		return fmt.Errorf("%w: %s", ErrManagerAlive, quote(name))
	}
	return nil
}

// Disappear takes the presence back.
func (s *Store) Disappear(ctx context.Context, p Presence) error {
	if err := s.rdb.HDel(ctx, s.keys.managers(), p.Instance).Err(); err != nil {
		return s.failed("disappear", err)
	}
	return nil
}
