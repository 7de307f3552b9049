package route

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// DefaultQueue is the queue of a task that does not name one. It always exists.
const DefaultQueue = "default"

// DefaultBucketName is the name of the bucket of a task that demands nothing.
const DefaultBucketName = DefaultQueue + ":::0"

// Bucket says where a ready task waits. All tasks of a bucket fit the same
// workers, so a claim never walks over tasks that do not fit.
type Bucket struct {
	// Queue is the task's queue; empty means DefaultQueue.
	Queue string
	// Env must be shared by task and worker; empty fits every worker (Flock).
	Env string
	// Labels are the label=value pairs the task demands, as [ParseLabels]
	// writes them.
	Labels string
	// Resources is what the task asks of a node, as [Resources.Text] writes it.
	Resources string
	// Priority: higher first among the due tasks of a queue; see [CheckPriority].
	Priority int
}

// Name is the bucket as part of a key: "default:::0", and with resources
// "default:::0:gpu%3D1". Colons and odd characters within the parts are
// percent-encoded.
func (b Bucket) Name() string {
	if b == (Bucket{}) {
		return DefaultBucketName
	}
	name := url.QueryEscape(b.QueueName()) + ":" + url.QueryEscape(b.Env) + ":" +
		url.QueryEscape(b.Labels) + ":" + strconv.Itoa(b.Priority)
	if b.Resources == "" {
		return name
	}
	return name + ":" + url.QueryEscape(b.Resources)
}

// QueueName is the queue, with the default one named.
func (b Bucket) QueueName() string {
	if b.Queue == "" {
		return DefaultQueue
	}
	return b.Queue
}

// ParseBucket reads what [Bucket.Name] wrote, and only that: another spelling of
// the same bucket would be a second key for it. The default queue comes out as
// the empty one.
func ParseBucket(name string) (Bucket, error) {
	parts := strings.Split(name, ":")
	if len(parts) != 4 && len(parts) != 5 {
		return Bucket{}, fmt.Errorf("bucket %q: want queue:env:labels:priority, and resources if any", name)
	}
	priority, err := strconv.Atoi(parts[3])
	if err != nil {
		return Bucket{}, fmt.Errorf("bucket %q: priority: %w", name, err)
	}
	for i := range parts {
		if parts[i], err = url.QueryUnescape(parts[i]); err != nil {
			return Bucket{}, fmt.Errorf("bucket %q: %w", name, err)
		}
	}
	b := Bucket{Queue: parts[0], Env: parts[1], Labels: parts[2], Priority: priority, Resources: strings.Join(parts[4:], "")}
	if b.Queue == DefaultQueue {
		b.Queue = ""
	}
	if want := b.Name(); want != name {
		return Bucket{}, fmt.Errorf("bucket %q: want it written as %q", name, want)
	}
	return b, nil
}

// Fields are the hash fields that say which bucket a task belongs to, each
// followed by its value; defaults are left out.
func (b Bucket) Fields() []string {
	var f []string
	add := func(name, value string) {
		if value != "" {
			f = append(f, name, value)
		}
	}
	if b.Queue != DefaultQueue {
		add("queue", b.Queue)
	}
	add("env", b.Env)
	add("labels", b.Labels)
	if b.Priority != 0 {
		add("priority", strconv.Itoa(b.Priority))
	}
	add("resources", b.Resources)
	return f
}
