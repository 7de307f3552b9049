package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/internal/route"
)

// RemoveNode takes away all that is known of a node: its limit, what servers have
// found of it, its place in the list. The error matches [ErrNodeInUse] while a
// worker of the node has a lease or a round runs there, or is a
// *statemachine.FieldError. A node that nothing is known of is none.
func (s *Store) RemoveNode(ctx context.Context, name string) error {
	if err := route.CheckNode(name); err != nil {
		return err
	}
	k := s.keys
	keys := []string{
		k.meta(), k.nodes(), k.node(name), k.suspects(), k.full(), k.wakeNode(name), k.busyNode(name), k.used(name), k.lease(),
	}
	v, err := s.run(ctx, "forget", keys, name, k.workerPrefix(), k.rules())
	if err != nil {
		return err
	}
	why, _ := v.(string)
	switch worker, registered := strings.CutPrefix(why, "worker "); {
	case registered:
		return fmt.Errorf("node %s: worker %s is registered from there: %w", quote(name), quote(worker), ErrNodeInUse)
	case why != "":
		return fmt.Errorf("node %s: tasks run there: %w", quote(name), ErrNodeInUse)
	}
	return nil
}
