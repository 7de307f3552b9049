package why

import (
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/route"
)

// newcomer is a worker that could be started on a node, or on a new one: it
// offers all that is demanded, and no more.
func (s *Situation) newcomer(node string) *candidate {
	q := s.queue(s.Task.Bucket.QueueName())
	bare := &candidate{s: s, queue: q, worker: Worker{Offer: route.Offer{Node: node, MaxThreads: route.NoLimit}, State: Ready, Slots: 1}}
	for _, r := range route.Unfit(s.Task.Bucket, unpaused(&q), bare.worker.Offer) {
		bare.adapt(r)
	}
	kind, text := s.nobody(node, &q)
	if len(s.alive()) == 0 {
		kind, text = KindNoWorker, "no worker is alive"
	}
	start := Remedy{Object: ObjectWorker, Attribute: AttrStart, Value: offerText(&bare.worker.Offer), Offer: bare.worker.Offer}
	c := s.examine(&bare.worker)
	c.cost += costStart
	c.reasons = append(Explanation{{Kind: kind, Text: text + "; start one with " + start.Value, Blocks: true, Change: start}}, c.reasons...)
	return c
}

// nobody says why only a new worker will do.
func (s *Situation) nobody(node string, q *Queue) (Kind, string) {
	avoids := len(q.Pin) == 0 && len(q.Ignore) > 0
	for _, w := range s.alive() {
		avoids = avoids && slices.Contains(q.Ignore, w.Node)
	}
	switch {
	case avoids:
		return KindIgnored, "queue " + q.Name + " avoids the nodes of all live workers (" + some(q.Ignore) + ")"
	case len(q.Pin) > 0 && !slices.ContainsFunc(s.alive(), func(w Worker) bool { return slices.Contains(q.Pin, w.Node) }):
		return KindPinned, "queue " + q.Name + " is pinned to " + some(q.Pin) + ", where no worker is alive"
	default:
		return KindUnfit, "no worker comes near to what it needs" + on(node)
	}
}

func on(node string) string {
	if node == "" {
		return ""
	}
	return " on node " + node
}

// offerText is an offer as the configuration of a worker has it.
func offerText(o *route.Offer) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" = "+value)
		}
	}
	add("node", o.Node)
	add("env", o.Env)
	add("labels", strings.Join(o.Labels, ","))
	add("resources", o.Resources.Text())
	add("classes", strings.Join(o.Classes, ","))
	if len(parts) == 0 {
		return "any configuration"
	}
	return strings.Join(parts, "; ")
}
