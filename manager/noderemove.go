package manager

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/route"
)

// RemoveNode takes away all that is known of a node that is gone: its limit, what
// servers have found of it, its place in the list. The error matches
// [ErrNodeInUse] while a worker is registered from there or a task runs there, or
// is a *statemachine.FieldError. A node that nothing is known of is no error. A
// worker that registers from there brings the node back.
func (m *Manager) RemoveNode(ctx context.Context, name string, opts ...ChangeOption) error {
	c, err := m.changing(opts)
	if err != nil {
		return err
	}
	if err := route.CheckNode(name); err != nil {
		return err
	}
	if c.dry {
		return m.nodeFree(ctx, name)
	}
	if err := m.store.RemoveNode(ctx, name); err != nil {
		return err
	}
	m.log.Info("removed node", "node", name, "by", c.by)
	return nil
}

// nodeFree returns an error if the node could not be removed now.
func (m *Manager) nodeFree(ctx context.Context, name string) error {
	found, _, err := m.node(ctx, name)
	if err != nil {
		return err
	}
	if found.Running > 0 {
		return fmt.Errorf("node %q: tasks run there: %w", name, ErrNodeInUse)
	}
	for i := range found.Workers {
		if w := &found.Workers[i]; w.Ended == 0 {
			return fmt.Errorf("node %q: worker %q is registered from there: %w", name, w.Name, ErrNodeInUse)
		}
	}
	return nil
}
