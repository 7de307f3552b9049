package route

import (
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
	// Resources is what the node has in all, not what is free now.
	Resources Resources
	// Classes are the classes of queues that the worker serves, each name or
	// name=version, beside the queues without a class, which all serve.
	Classes []string
	// MaxThreads is how many tasks may run on the node over all queues, by the
	// configuration of this worker. It is enforced by the claim, not by Unfit.
	MaxThreads Limit
}

// Unfit says why no task of b, a bucket of q, may run at the worker that offers
// o; all reasons, and none if it may. Limits and what is free at the moment are
// not considered.
func Unfit(b Bucket, q Queue, o Offer) []Reason {
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
	if q.Class != "" && !o.serves(q.Class) {
		why = append(why, Reason{Kind: KindClass, Wanted: q.Class, Has: strings.Join(o.Classes, ",")})
	}
	if b.Env != "" && b.Env != o.Env {
		why = append(why, Reason{Kind: KindEnv, Wanted: b.Env, Has: o.Env})
	}
	return append(o.without(b.Labels, why), o.tooSmall(b.Resources)...)
}

// serves reports whether a queue of that class is one for this worker.
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

// tooSmall are the resources of which more is asked than the node has. What is
// no demand, or is not written as [Resources.Text] does, by the hand of another
// client, nobody has: it could not be counted exactly.
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
