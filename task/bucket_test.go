package task_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/task"
)

func TestBucketNames(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]task.Bucket{
		"default:::0":             {},
		"default:::0:gpu%3D1":     {Resources: "gpu=1"},
		"q:python:gpu%3Da:-3":     {Queue: "q", Env: "python", Labels: "gpu=a", Priority: -3},
		"q%3Aa:::7:a%3D1%2Cb%3D2": {Queue: "q:a", Priority: 7, Resources: "a=1,b=2"},
		"default:::0::resize":     {Class: "resize"},
		"q:::0:gpu%3D1:a%3A%3Ab":  {Queue: "q", Resources: "gpu=1", Class: "a::b"},
	} {
		if got := b.Name(); got != want {
			t.Errorf("%+v is %q, want %q", b, got, want)
		}
		if got, err := task.ParseBucket(want); err != nil || got != b {
			t.Errorf("%q is %+v, %v; want %+v", want, got, err, b)
		}
	}
	if got := (task.Bucket{Queue: task.DefaultQueue}).Name(); got != task.DefaultBucketName {
		t.Errorf("the default queue by its name is %q", got)
	}
}

// TestBucketRoundTrip: whatever the parts hold, the name brings it back, and no
// two buckets share one.
func TestBucketRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := task.Bucket{
			Queue: rapid.String().Draw(t, "queue"), Env: rapid.String().Draw(t, "env"), Labels: rapid.String().Draw(t, "labels"),
			Resources: rapid.String().Draw(t, "resources"), Class: rapid.String().Draw(t, "class"), Priority: rapid.Int().Draw(t, "priority"),
		}
		want := b
		if b.Queue == task.DefaultQueue {
			want.Queue = ""
		}
		got, err := task.ParseBucket(b.Name())
		if err != nil || got != want {
			t.Fatalf("%+v came back as %+v, %v by way of %q", b, got, err, b.Name())
		}
	})
}

// TestBucketNamesRefused: another spelling of a bucket is refused.
func TestBucketNamesRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "default", "default::0", "default:::", "default:::x", "default:::0:a:b:c", "default:::0::", "default:::0:a:", "default:::+0", "default:::00", "default:::0:",
		":::0", "q:%zz::0", "q:%3a::0", "q:a b::0", "default:::0%20",
	} {
		if b, err := task.ParseBucket(name); err == nil {
			t.Errorf("%q is %+v", name, b)
		}
	}
}

func TestBucketFields(t *testing.T) {
	t.Parallel()
	for _, b := range []task.Bucket{{}, {Queue: task.DefaultQueue}} {
		if f := b.Fields(); len(f) != 0 {
			t.Errorf("%+v has fields %q", b, f)
		}
	}
	b := task.Bucket{Queue: "q", Env: "e", Labels: "a=b", Resources: "gpu=1", Class: "c", Priority: 2}
	want := []string{"queue", "q", "env", "e", "labels", "a=b", "priority", "2", "resources", "gpu=1", "class", "c"}
	if got := b.Fields(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
