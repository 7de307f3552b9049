package store

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DefaultQueue is the queue of a task that does not name one.
const DefaultQueue = "default"

// Bucket says where a ready task waits. All tasks of a bucket fit the same
// workers, so a claim never walks over tasks that do not fit.
type Bucket struct {
	// Queue is the task's queue; empty means DefaultQueue.
	Queue string
	// Env must be shared by task and worker; empty fits every worker (Flock).
	Env string
	// Labels are the label=value pairs the task demands, sorted, joined by commas.
	Labels string
	// Priority: higher first among the due tasks of a queue.
	Priority int
}

// Name is the bucket as part of a key: "default:::0". Colons and odd
// characters within the parts are percent-encoded.
func (b Bucket) Name() string {
	if b == (Bucket{}) {
		return defaultBucketName
	}
	return url.QueryEscape(b.queue()) + ":" + url.QueryEscape(b.Env) + ":" +
		url.QueryEscape(b.Labels) + ":" + strconv.Itoa(b.Priority)
}

const defaultBucketName = DefaultQueue + ":::0"

func (b Bucket) queue() string {
	if b.Queue == "" {
		return DefaultQueue
	}
	return b.Queue
}

// parseBucket reads what Name wrote.
func parseBucket(name string) (Bucket, error) {
	parts := strings.Split(name, ":")
	if len(parts) != 4 {
		return Bucket{}, fmt.Errorf("bucket %q: want queue:env:labels:priority", name)
	}
	for i := range 3 {
		text, err := url.QueryUnescape(parts[i])
		if err != nil {
			return Bucket{}, fmt.Errorf("bucket %q: %w", name, err)
		}
		parts[i] = text
	}
	priority, err := strconv.Atoi(parts[3])
	if err != nil {
		return Bucket{}, fmt.Errorf("bucket %q: priority: %w", name, err)
	}
	if parts[0] == DefaultQueue {
		parts[0] = ""
	}
	return Bucket{Queue: parts[0], Env: parts[1], Labels: parts[2], Priority: priority}, nil
}

// fields are the hash fields that say which bucket a task belongs to; defaults
// are left out.
func (b Bucket) fields() []string {
	var f []string
	if b.queue() != DefaultQueue {
		f = append(f, "queue", b.Queue)
	}
	if b.Env != "" {
		f = append(f, "env", b.Env)
	}
	if b.Labels != "" {
		f = append(f, "labels", b.Labels)
	}
	if b.Priority != 0 {
		f = append(f, "priority", strconv.Itoa(b.Priority))
	}
	return f
}

// Claimable returns the buckets that a worker without env may take from, in the
// order it should: higher priority first, then by name. Labels are what the
// worker offers; a bucket must not demand any other.
func Claimable(all []Bucket, labels ...string) []Bucket {
	fit := make([]Bucket, 0, len(all))
	for _, b := range all {
		if b.Env == "" && b.satisfied(labels) {
			fit = append(fit, b)
		}
	}
	slices.SortFunc(fit, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.queue(), b.queue()), cmp.Compare(a.Labels, b.Labels))
	})
	return fit
}

func (b Bucket) satisfied(labels []string) bool {
	if b.Labels == "" {
		return true
	}
	for demanded := range strings.SplitSeq(b.Labels, ",") {
		if !slices.Contains(labels, demanded) {
			return false
		}
	}
	return true
}

// member is how an id stands in a bucket: a letter for its number of digits
// and the digits, so that the order of the bytes is the order of the numbers
// and tasks with equal scores are claimed first in, first out.
func member(id int64) string {
	digits := strconv.FormatInt(id, 10)
	return string(rune('a'+len(digits)-1)) + digits
}
