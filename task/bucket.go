package task

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
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
	// Env must be shared by task and worker; empty fits every worker.
	Env string
	// Labels are the label=value pairs the task demands, as [ParseLabels]
	// writes them.
	Labels string
	// Resources is what the task asks of a node, as [Resources.Text] writes it.
	Resources string
	// Class is the task's own class; empty means that of its queue.
	Class string
	// Priority: higher first among the due tasks of a queue.
	Priority int
}

// Name is the bucket as part of a key: "default:::0", with resources
// "default:::0:gpu%3D1", with a class "default:::0::resize". Colons and odd
// characters within the parts are percent-encoded.
func (b Bucket) Name() string {
	if b == (Bucket{}) {
		return DefaultBucketName
	}
	name := url.QueryEscape(b.QueueName()) + ":" + url.QueryEscape(b.Env) + ":" +
		url.QueryEscape(b.Labels) + ":" + strconv.Itoa(b.Priority)
	if b.Resources != "" || b.Class != "" {
		name += ":" + url.QueryEscape(b.Resources)
	}
	if b.Class != "" {
		name += ":" + url.QueryEscape(b.Class)
	}
	return name
}

// QueueName is the queue, with the default one named.
func (b Bucket) QueueName() string {
	if b.Queue == "" {
		return DefaultQueue
	}
	return b.Queue
}

// Resources that each worker has without being told.
const (
	CPUs   = "cpus" // its slots: a task takes as many as it asks for
	Memory = "mem"  // MiB of memory of its host, or of its control group
)

// Slots is how many slots of its worker a task of the bucket takes.
func (b Bucket) Slots() int {
	for item := range strings.SplitSeq(b.Resources, ",") {
		if name, amount, ok := cutResource(item); ok && name == CPUs {
			return amount
		}
	}
	return 1
}

// ParseBucket reads what [Bucket.Name] wrote, and only that: another spelling of
// the same bucket would be a second key for it. The default queue comes out as
// the empty one.
func ParseBucket(name string) (Bucket, error) {
	parts := strings.Split(name, ":")
	if len(parts) < 4 || len(parts) > 6 {
		return Bucket{}, fmt.Errorf("bucket %q: want queue:env:labels:priority, and resources and class if any", name)
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
	parts = append(parts, "", "")
	b := Bucket{Queue: parts[0], Env: parts[1], Labels: parts[2], Priority: priority, Resources: parts[4], Class: parts[5]}
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
	add("class", b.Class)
	return f
}

// maxLabels is how many labels one text may hold, maxText how long one of them
// may be, in bytes.
const (
	maxLabels = 64
	maxText   = 128
)

const wantLabels = "a list of at most 64 label=value of at most 128 bytes each, without blanks; write for example gpu=a100,zone=eu"

// ParseLabels reads label=value pairs separated by commas and returns the one
// text for them: sorted, each once. The error names the field labels.
func ParseLabels(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	items := strings.Split(text, ",")
	for _, item := range items {
		if !validLabel(item) {
			return "", bad("labels", item, "label=value without blanks and commas; write for example gpu=a100,zone=eu")
		}
	}
	slices.Sort(items)
	items = slices.Compact(items)
	if len(items) > maxLabels {
		return "", bad("labels", text, wantLabels)
	}
	return strings.Join(items, ","), nil
}

// validLabel takes what is left when the separators of labels are taken away.
func validLabel(item string) bool {
	name, value, ok := strings.Cut(item, "=")
	return ok && name != "" && value != "" && !strings.Contains(value, "=") && plain(item, maxText)
}

// Resources are whole amounts by name, such as gpu=1 and mem=2048: what a task
// asks or what a worker offers. The unit of each is the users' agreement.
type Resources map[string]int

// MarshalJSON writes an object, also of nothing.
func (r Resources) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]int(r)) //nolint:wrapcheck // it cannot fail
}

// maxResources is how many names one text may hold.
const maxResources = 16

const wantResources = "a list of at most 16 different name=number, numbers from 1 to 1000000000, " +
	"names of at most 64 small letters, digits and underscores; write for example gpu=1,mem=2048"

// ParseResources reads name=number pairs separated by commas, in any order; the
// empty text is no resources, which is nil. The error names the field resources.
func ParseResources(text string) (Resources, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nothing asked is no error
	}
	r := Resources{}
	for item := range strings.SplitSeq(text, ",") {
		name, amount, ok := cutResource(item)
		if _, twice := r[name]; !ok || twice || len(r) == maxResources {
			return nil, bad("resources", text, wantResources)
		}
		r[name] = amount
	}
	return r, nil
}

// Text is the one text for these resources: sorted by name, separated by commas.
func (r Resources) Text() string {
	items := make([]string, 0, len(r))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		items = append(items, name+"="+strconv.Itoa(r[name]))
	}
	return strings.Join(items, ",")
}

// isDemand reports whether text is what [Resources.Text] writes. It does not allocate.
func isDemand(text string) bool {
	last, n := "", 0
	for item := range strings.SplitSeq(text, ",") {
		name, _, ok := cutResource(item)
		if n++; !ok || name <= last || n > maxResources {
			return false
		}
		last = name
	}
	return true
}

// cutResource reads one name=number.
func cutResource(item string) (name string, amount int, ok bool) {
	name, digits, _ := strings.Cut(item, "=")
	if name == "" || len(name) > maxName || name[0] < 'a' || name[0] > 'z' {
		return "", 0, false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "", 0, false
		}
	}
	amount, ok = digitsOf(digits, 1, maxCount)
	return name, amount, ok
}
