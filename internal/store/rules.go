package store

import (
	"context"

	"github.com/tdf-go/tdf/internal/route"
)

// Rules are what decides which tasks a worker of a node may claim, as they
// stand at one moment.
type Rules struct {
	// Version is raised by every change of a queue or a node, and never 0; a claim
	// made under an older version claims nothing (see [ClaimReply]).
	Version int64
	// Known is the version of the list of buckets.
	Known   int64
	Buckets []route.Bucket
	Queues  []route.Queue
	// Node is the record of the node asked for.
	Node route.Node
}

// Rules reads the rules for the workers of a node. A record that somebody has
// damaged stops only what it is about (see route.ParseQueue and route.ParseNode).
func (s *Store) Rules(ctx context.Context, node string) (Rules, error) {
	k := s.keys
	r, err := s.runList(ctx, "rules", []string{k.meta(), k.buckets(), k.queues(), k.node(node)}, k.queue(""))
	if err != nil {
		return Rules{}, err
	}
	rules := Rules{Version: r.number(0) + 1, Known: r.number(1), Node: route.ParseNode(node, r.list(4).fields())}
	for i := range r.list(2) {
		rules.Buckets = append(rules.Buckets, bucketOf(r.list(2).text(i)))
	}
	for i := range r.list(3) {
		q := r.list(3).list(i)
		rules.Queues = append(rules.Queues, route.ParseQueue(q.text(0), q[1:].fields()))
	}
	return rules, nil
}
