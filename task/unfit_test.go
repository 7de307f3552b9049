package task_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/task"
)

func mustLabels(l []string) string {
	text, err := task.ParseLabels(strings.Join(l, ","))
	if err != nil {
		panic(err)
	}
	return text
}

// TestUnfitReasons has a row per reason, with what comes nearest.
func TestUnfitReasons(t *testing.T) {
	t.Parallel()
	worker := task.Offer{
		Worker: "w", Node: "n1", Env: "python", Labels: []string{"zone=eu", "gpu=a", "gpu=b"},
		Resources: task.Resources{"gpu": 4}, Classes: []string{"index=3", "sum"},
	}
	for _, tc := range []struct {
		name   string
		bucket task.Bucket
		queue  func(*task.QueueSpec)
		want   []task.Reason
		words  string
	}{
		{name: "fits", bucket: task.Bucket{Env: "python", Labels: "gpu=a,zone=eu", Resources: "gpu=4"}},
		{name: "no env", bucket: task.Bucket{}},
		{name: "env", bucket: task.Bucket{Env: "go"}, want: []task.Reason{{Kind: task.KindEnv, Wanted: "go", Has: "python"}},
			words: "needs env go, the worker has python"},
		{name: "label of another value", bucket: task.Bucket{Labels: "gpu=c"},
			want: []task.Reason{{Kind: task.KindLabel, Wanted: "gpu=c", Has: "gpu=a,gpu=b"}}, words: "needs label gpu=c, the worker offers gpu=a,gpu=b"},
		{name: "label of no value", bucket: task.Bucket{Labels: "disk=ssd"},
			want: []task.Reason{{Kind: task.KindLabel, Wanted: "disk=ssd"}}, words: "needs label disk=ssd, the worker offers none"},
		{name: "more than there is", bucket: task.Bucket{Resources: "gpu=5"},
			want: []task.Reason{{Kind: task.KindResource, Wanted: "gpu=5", Has: "gpu=4"}}, words: "needs resource gpu=5, the node has gpu=4"},
		{name: "what is not there", bucket: task.Bucket{Resources: "gpu=1,lic=1"},
			want: []task.Reason{{Kind: task.KindResource, Wanted: "lic=1"}}, words: "needs resource lic=1, the node has none"},
		{name: "no amount", bucket: task.Bucket{Resources: "gpu=0"},
			want: []task.Reason{{Kind: task.KindResource, Wanted: "gpu=0"}}, words: "needs resource gpu=0, the node has none"},
		{name: "pinned elsewhere", queue: func(q *task.QueueSpec) { q.Pin = []string{"n2", "n3"} },
			want: []task.Reason{{Kind: task.KindPinned, Wanted: "n2,n3", Has: "n1"}}, words: "the queue is pinned to n2,n3, this is n1"},
		{name: "ignored", queue: func(q *task.QueueSpec) { q.Ignore = []string{"n1"} },
			want: []task.Reason{{Kind: task.KindIgnored, Wanted: "n1", Has: "n1"}}, words: "the queue avoids n1, this is n1"},
		{name: "pin wins", queue: func(q *task.QueueSpec) { q.Pin, q.Ignore = []string{"n1"}, []string{"n1"} }},
		{name: "pin wins and misses", queue: func(q *task.QueueSpec) { q.Pin, q.Ignore = []string{"n2"}, []string{"n2"} },
			want: []task.Reason{{Kind: task.KindPinned, Wanted: "n2", Has: "n1"}}, words: "the queue is pinned to n2, this is n1"},
		{name: "paused", queue: func(q *task.QueueSpec) { q.Paused = true },
			want: []task.Reason{{Kind: task.KindPaused, Wanted: "q"}}, words: "queue q is paused"},
		{name: "class", queue: func(q *task.QueueSpec) { q.Class = "render" },
			want: []task.Reason{{Kind: task.KindClass, Wanted: "render", Has: "index=3,sum"}}, words: "needs class render, the worker serves index=3,sum"},
		{name: "class of any version", queue: func(q *task.QueueSpec) { q.Class = "index" }},
		{name: "not the beginning of a class", queue: func(q *task.QueueSpec) { q.Class = "su" },
			want: []task.Reason{{Kind: task.KindClass, Wanted: "su", Has: "index=3,sum"}}, words: "needs class su, the worker serves index=3,sum"},
		{name: "class of the task", bucket: task.Bucket{Class: "render"},
			want: []task.Reason{{Kind: task.KindClass, Wanted: "render", Has: "index=3,sum"}}, words: "needs class render, the worker serves index=3,sum"},
		{name: "its own class before that of the queue", bucket: task.Bucket{Class: "sum"}, queue: func(q *task.QueueSpec) { q.Class = "render" }},
		{name: "its own class whatever the queue's", bucket: task.Bucket{Class: "render"}, queue: func(q *task.QueueSpec) { q.Class = "sum" },
			want: []task.Reason{{Kind: task.KindClass, Wanted: "render", Has: "index=3,sum"}}, words: "needs class render, the worker serves index=3,sum"},
		{name: "all reasons", bucket: task.Bucket{Env: "go", Labels: "gpu=c,zone=us"}, queue: func(q *task.QueueSpec) { q.Paused = true },
			want: []task.Reason{
				{Kind: task.KindPaused, Wanted: "q"}, {Kind: task.KindEnv, Wanted: "go", Has: "python"},
				{Kind: task.KindLabel, Wanted: "gpu=c", Has: "gpu=a,gpu=b"}, {Kind: task.KindLabel, Wanted: "zone=us", Has: "zone=eu"},
			}, words: "queue q is paused"},
		// Limits are the claim's.
		{name: "limits", queue: func(q *task.QueueSpec) { q.Threads, q.MaxThreads = task.AtMost(0), task.AtMost(0) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q := task.ParseQueue("q", nil)
			if tc.queue != nil {
				tc.queue(&q)
			}
			got := task.Unfit(tc.bucket, q, worker)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(got) > 0 && got[0].String() != tc.words {
				t.Errorf("in words %q, want %q", got[0], tc.words)
			}
		})
	}
}

// TestWhichClassesAreServed: what has a class is for those that name it, what has none for all that run programs.
func TestWhichClassesAreServed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		offer task.Offer
		class string
		fits  bool
	}{
		{task.Offer{}, "render", false},
		{task.Offer{}, "", true},
		{task.Offer{Classes: []string{"index", "render=2"}}, "render", true},
		{task.Offer{Classes: []string{"index"}}, "", true},
		{task.Offer{Classes: []string{"index"}, HandlersOnly: true}, "", false},
		{task.Offer{Classes: []string{"index"}, HandlersOnly: true}, "index", true},
		{task.Offer{Classes: []string{"index"}, HandlersOnly: true}, "render", false},
	} {
		q := task.ParseQueue("q", nil)
		own := task.Unfit(task.Bucket{Class: tc.class}, q, tc.offer)
		q.Class = tc.class
		if got := task.Unfit(task.Bucket{}, q, tc.offer); (len(got) == 0) != tc.fits || !slices.Equal(got, own) {
			t.Errorf("class %q at %+v: %v; of the task: %v", tc.class, tc.offer, got, own)
		}
	}
	only := task.Offer{Classes: []string{"index", "sum"}, HandlersOnly: true}
	want := "has no class, the worker runs no programs and takes only what has one of its classes: index,sum"
	if why := task.Unfit(task.Bucket{}, task.ParseQueue("q", nil), only); len(why) != 1 || why[0].Kind != task.KindPrograms || why[0].String() != want {
		t.Errorf("%v, want %q", why, want)
	}
}

// fits is the slow and obvious twin of Unfit.
func fits(b task.Bucket, q task.QueueSpec, o task.Offer) bool {
	onNode := !slices.Contains(q.Ignore, o.Node)
	if len(q.Pin) > 0 {
		onNode = slices.Contains(q.Pin, o.Node)
	}
	classes := map[string]bool{"": !o.HandlersOnly}
	for _, c := range o.Classes {
		classes[strings.Split(c, "=")[0]] = true
	}
	class := classes[q.Class]
	if b.Class != "" {
		class = classes[b.Class]
	}
	offered := map[string]bool{}
	for _, l := range o.Labels {
		offered[l] = true
	}
	labels := true
	if b.Labels != "" {
		for l := range strings.SplitSeq(b.Labels, ",") {
			labels = labels && offered[l]
		}
	}
	asked, err := task.ParseResources(b.Resources)
	enough := err == nil
	for name, n := range asked {
		enough = enough && o.Resources[name] >= n
	}
	return !q.Paused && onNode && class && (b.Env == "" || b.Env == o.Env) && labels && enough
}

func TestUnfitAgainstItsTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, o := aBucket().Draw(t, "bucket"), aWorker().Draw(t, "worker")
		q := queueNamed(t, b.QueueName())
		if got := task.Unfit(b, q, o); (len(got) == 0) != fits(b, q, o) {
			t.Fatalf("Unfit says %v", got)
		}
	})
}

func TestUnfitDoesNotAllocate(t *testing.T) {
	b := task.Bucket{Env: "python", Labels: "gpu=a,zone=eu", Resources: "gpu=1,mem=2", Class: "render", Priority: 3}
	q := task.ParseQueue("q", nil)
	q.Class, q.Pin = "render", []string{"n1"}
	o := task.Offer{
		Node: "n1", Env: "python", Labels: []string{"zone=eu", "gpu=a"}, Resources: task.Resources{"gpu": 1, "mem": 9}, Classes: []string{"render=1"}, HandlersOnly: true,
	}
	var unfit int
	if n := testing.AllocsPerRun(100, func() { unfit += len(task.Unfit(b, q, o)) }); n != 0 || unfit != 0 {
		t.Errorf("%v allocations, %d reasons", n, unfit)
	}
}

// TestCandidatesAreThoseThatFit: exactly the fitting buckets, each once, in order.
func TestCandidatesAreThoseThatFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		buckets := rapid.SliceOfNDistinct(aBucket(), 0, 12, task.Bucket.Name).Draw(t, "buckets")
		o := aWorker().Draw(t, "worker")
		var queues []task.QueueSpec
		for _, name := range []string{"s", task.DefaultQueue, "q"} { // r is unknown
			queues = append(queues, queueNamed(t, name))
		}
		want := map[string]bool{}
		for _, b := range buckets {
			q := task.ParseQueue(b.QueueName(), nil)
			if i := slices.IndexFunc(queues, func(q task.QueueSpec) bool { return q.Name == b.QueueName() }); i >= 0 {
				q = queues[i]
			}
			if fits(b, q, o) {
				want[b.Name()] = true
			}
		}
		last := ""
		for _, turn := range task.Candidates(buckets, queues, o) {
			if turn.Queue.Name <= last || len(turn.Buckets) == 0 {
				t.Fatalf("queue %q after %q with %d buckets", turn.Queue.Name, last, len(turn.Buckets))
			}
			last = turn.Queue.Name
			for i, b := range turn.Buckets {
				if b.QueueName() != turn.Queue.Name || !want[b.Name()] {
					t.Fatalf("%q in the turn of %q", b.Name(), turn.Queue.Name)
				}
				delete(want, b.Name())
				if i > 0 && !inOrder(turn.Buckets[i-1], b) {
					t.Fatalf("%q before %q", turn.Buckets[i-1].Name(), b.Name())
				}
			}
		}
		if len(want) > 0 {
			t.Fatalf("left out: %v", want)
		}
	})
}

func inOrder(a, b task.Bucket) bool {
	return a.Priority > b.Priority || a.Priority == b.Priority && a.Name() < b.Name()
}
