package task

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Offer is what one worker on its node offers.
type Offer struct {
	// Worker and Node are names.
	Worker, Node string
	// Env is the worker's environment; empty offers none.
	Env string
	// Labels are label=value pairs, in any order.
	Labels []string
	// Resources is what the node has in all, not what is free now. Slots is what the worker has of [CPUs].
	Resources Resources
	Slots     int
	// Classes are the classes of tasks and queues that the worker serves, each name
	// or name=version.
	Classes []string
	// HandlersOnly says that it runs no programs: it takes no task without a class,
	// which all others do.
	HandlersOnly bool
	// MaxThreads is how many tasks may run on the node over all queues, by the
	// configuration of this worker. It is enforced by the claim, not by Unfit.
	MaxThreads Limit
}

// Unfit says why no task of b, a bucket of q, may run at the worker that offers
// o; all reasons, and none if it may. Limits and what is free at the moment are
// not considered.
func Unfit(b Bucket, q QueueSpec, o Offer) []Reason {
	var why []Reason
	if q.Paused {
		why = append(why, Reason{Kind: KindPaused, Wanted: q.Name})
	}
	if len(q.Damaged) > 0 {
		why = append(why, Reason{Kind: KindPaused, Wanted: q.Name, Has: q.Damaged.Text()})
	}
	switch pinned := len(q.Pin) > 0; {
	case pinned && !slices.Contains(q.Pin, o.Node):
		why = append(why, Reason{Kind: KindPinned, Wanted: strings.Join(q.Pin, ","), Has: o.Node})
	case !pinned && slices.Contains(q.Ignore, o.Node):
		why = append(why, Reason{Kind: KindIgnored, Wanted: strings.Join(q.Ignore, ","), Has: o.Node})
	}
	class := cmp.Or(b.Class, q.Class)
	if class != "" && !o.serves(class) {
		why = append(why, Reason{Kind: KindClass, Wanted: class, Has: strings.Join(o.Classes, ",")})
	}
	if class == "" && o.HandlersOnly {
		why = append(why, Reason{Kind: KindPrograms, Has: strings.Join(o.Classes, ",")})
	}
	if b.Env != "" && b.Env != o.Env {
		why = append(why, Reason{Kind: KindEnv, Wanted: b.Env, Has: o.Env})
	}
	return append(o.without(b.Labels, why), o.tooSmall(b.Resources)...)
}

// serves reports whether the class is one of this worker.
func (o *Offer) serves(class string) bool {
	return slices.ContainsFunc(o.Classes, func(offered string) bool {
		rest, ok := strings.CutPrefix(offered, class)
		return ok && (rest == "" || rest[0] == '=')
	})
}

// without adds the demanded labels that are not offered to why.
func (o *Offer) without(demanded string, why []Reason) []Reason {
	if demanded == "" {
		return why
	}
	for label := range strings.SplitSeq(demanded, ",") {
		if !slices.Contains(o.Labels, label) {
			why = append(why, Reason{Kind: KindLabel, Wanted: label, Has: o.alike(label)})
		}
	}
	return why
}

// alike are the offered labels that differ from label in their value only.
func (o *Offer) alike(label string) string {
	name, _, _ := strings.Cut(label, "=")
	var found []string
	for _, offered := range o.Labels {
		if strings.HasPrefix(offered, name+"=") {
			found = append(found, offered)
		}
	}
	return strings.Join(found, ",")
}

// tooSmall are the resources of which more is asked than the node has. A malformed
// demand, written by another client, matches no node, because it cannot be counted.
func (o *Offer) tooSmall(asked string) []Reason {
	if asked == "" {
		return nil
	}
	if !isDemand(asked) {
		return []Reason{{Kind: KindResource, Wanted: asked}}
	}
	var why []Reason
	for item := range strings.SplitSeq(asked, ",") {
		name, amount, _ := cutResource(item)
		has, some := o.Resources[name]
		if name == CPUs {
			has, some = o.Slots, true
		}
		if amount <= has {
			continue
		}
		reason := Reason{Kind: KindResource, Wanted: item}
		if some {
			reason.Has = name + "=" + strconv.Itoa(has)
		}
		why = append(why, reason)
	}
	return why
}

// Kind is in what respect a task and a worker do not go together.
type Kind string

// The kinds of reasons.
const (
	KindEnv      Kind = "env"      // the task's env is not the worker's
	KindLabel    Kind = "label"    // the worker does not offer a label
	KindResource Kind = "resource" // the node has less in all than the task asks
	KindPinned   Kind = "pinned"   // the queue is for other nodes
	KindIgnored  Kind = "ignored"  // the queue is not for this node
	KindPaused   Kind = "paused"   // the queue is paused
	KindClass    Kind = "class"    // the worker does not serve the class of the task, or of its queue
	KindPrograms Kind = "programs" // the task has no class, and the worker has only handlers
)

// Reason says why a task must not run at a worker.
type Reason struct {
	Kind Kind
	// Wanted is what the task or its queue demands: an env, a label=value, a
	// name=number, a list of nodes, a class. For KindIgnored it is the list of
	// nodes to avoid, for KindPaused the name of the queue, for KindPrograms empty.
	Wanted string
	// Has is what comes nearest to it on the worker's side: its env, the same
	// label or resource with what it has of it, the node, its classes. Empty if
	// there is nothing of the kind. For KindPaused it is what of the queue's
	// record is damaged.
	Has string
}

// String says it in words for people.
func (r Reason) String() string {
	switch r.Kind {
	case KindEnv:
		return "needs env " + r.Wanted + ", the worker has " + orNone(r.Has)
	case KindLabel:
		return "needs label " + r.Wanted + ", the worker offers " + orNone(r.Has)
	case KindResource:
		owner := "node"
		if strings.HasPrefix(r.Wanted, CPUs+"=") {
			owner = "worker"
		}
		return "needs resource " + r.Wanted + ", the " + owner + " has " + orNone(r.Has)
	case KindPinned:
		return "the queue is pinned to " + r.Wanted + ", this is " + orNone(r.Has)
	case KindIgnored:
		return "the queue avoids " + r.Wanted + ", this is " + orNone(r.Has)
	case KindPaused:
		if r.Has != "" {
			return "queue " + r.Wanted + " counts as paused, its record is damaged: " + r.Has
		}
		return "queue " + r.Wanted + " is paused"
	case KindClass:
		return "needs class " + r.Wanted + ", the worker serves " + orNone(r.Has)
	case KindPrograms:
		return "has no class, the worker runs no programs and takes only what has one of its classes: " + orNone(r.Has)
	}
	return string(r.Kind) + " " + r.Wanted
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Candidate is a queue with the buckets of it that a worker may take from.
type Candidate struct {
	Queue QueueSpec
	// Buckets are sorted by priority, the highest first, then by name.
	Buckets []Bucket
}

// Candidates groups those of the buckets that the worker may take from by their
// queues, which are sorted by name. A queue without such a bucket is left out; a
// bucket whose queue is not among queues belongs to one without attributes.
func Candidates(buckets []Bucket, queues []QueueSpec, o Offer) []Candidate {
	byName := make(map[string]QueueSpec, len(queues))
	for _, q := range queues {
		byName[q.Name] = q
	}
	fit := map[string]*Candidate{}
	for _, b := range buckets {
		name := b.QueueName()
		q, known := byName[name]
		if !known {
			q = newQueue(name)
		}
		if len(Unfit(b, q, o)) > 0 {
			continue
		}
		if fit[name] == nil {
			fit[name] = &Candidate{Queue: q}
		}
		fit[name].Buckets = append(fit[name].Buckets, b)
	}
	found := make([]Candidate, 0, len(fit))
	for _, name := range slices.Sorted(maps.Keys(fit)) {
		slices.SortFunc(fit[name].Buckets, before)
		found = append(found, *fit[name])
	}
	return found
}

// before orders the buckets of a queue.
func before(a, b Bucket) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	return cmp.Compare(a.Name(), b.Name())
}
