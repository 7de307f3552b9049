package why

import (
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/route"
)

// shelf is what a node has of each resource, and what of it is taken.
type shelf struct {
	offered, used route.Resources
}

// newShelf is that of a worker: what it does not offer does not count.
func newShelf(w *Worker, n *Node) shelf {
	used := maps.Clone(n.Used)
	if used == nil {
		used = route.Resources{}
	}
	return shelf{offered: w.Resources, used: used}
}

// lacks is how much of a resource is missing to give n of it.
func (s shelf) lacks(name string, n int) int { return n - (s.offered[name] - s.used[name]) }

// short reports whether a demand finds too little, or what is kept for others.
func (s shelf) short(demand route.Resources, kept map[string]bool) bool {
	for name, n := range demand {
		if kept[name] || s.lacks(name, n) > 0 {
			return true
		}
	}
	return false
}

func (s shelf) take(demand route.Resources) {
	for name, n := range demand {
		s.used[name] += n
	}
}

// keep notes that nothing of what is demanded is for those behind.
func keep(kept map[string]bool, demand route.Resources) {
	for name := range demand {
		kept[name] = true
	}
}

// demandOf is what the tasks of a bucket ask. What is no resource fits nowhere,
// so it does not matter here.
func demandOf(b route.Bucket) route.Resources {
	fields := b.Fields()
	i := slices.Index(fields, "resources")
	if i < 0 {
		return nil
	}
	demand, err := route.ParseResources(fields[i+1])
	if err != nil {
		return nil
	}
	return demand
}
