package store

// bucketArgs are the buckets one call of a script names, each once. Scripts
// find a bucket, and its wake list beside it, by its place counted from 1.
type bucketArgs struct {
	names []string
	place map[string]int
}

// index returns the place of a bucket, which it gets at the first mention.
func (a *bucketArgs) index(b Bucket) int {
	name := b.Name()
	if i, ok := a.place[name]; ok {
		return i
	}
	if a.place == nil {
		a.place = map[string]int{}
	}
	a.names = append(a.names, name)
	a.place[name] = len(a.names)
	return len(a.names)
}

// keys are the pairs of bucket and wake list.
func (a *bucketArgs) keys(k keys) []string {
	pairs := make([]string, 0, 2*len(a.names))
	for _, name := range a.names {
		pairs = append(pairs, k.ready(name), k.wake(name))
	}
	return pairs
}
