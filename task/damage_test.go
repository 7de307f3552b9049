package task_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// TestDamagedQueue: what can be read of a record counts, and the queue is taken
// from only once the rest is set anew.
func TestDamagedQueue(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]string{"threads": "x", "paused": "perhaps", "default_env": "a b", "order": "odd"} {
		fields := map[string]string{"description": "nightly", "nodes_pin": "a", "maxthreads": "3", field: value}
		q := task.ParseQueue("q", fields)
		if q.Description != "nightly" || !slices.Equal(q.Pin, []string{"a"}) || q.MaxThreads != task.AtMost(3) || q.Paused {
			t.Errorf("%s: %+v", field, q)
		}
		refused(t, q.Damaged.Err(), field)
		why := task.Unfit(task.Bucket{Queue: "q"}, q, task.Offer{Node: "a"})
		if len(why) != 1 || why[0].Kind != task.KindPaused || !strings.Contains(why[0].String(), field) {
			t.Errorf("%s: unfit because of %v", field, why)
		}
		before := q
		if err := q.Set(field, ""); err != nil || q.Damaged != nil {
			t.Errorf("%s: set anew: %+v, %v", field, q, err)
		}
		if why := task.Unfit(task.Bucket{Queue: "q"}, q, task.Offer{Node: "a"}); len(why) > 0 {
			t.Errorf("%s: set anew, and unfit because of %v", field, why)
		}
		if len(before.Damaged) != 1 {
			t.Errorf("%s: the copy was changed: %+v", field, before)
		}
	}
	if q := task.ParseQueue("q", map[string]string{"created": "x"}); q.Damaged != nil || !q.Created.IsZero() {
		t.Errorf("%+v", q)
	}
	if q := task.ParseQueue("q", map[string]string{"threads": "x", "order": "y"}); !slices.Equal(q.Damaged.Fields(), []string{"threads", "order"}) {
		t.Errorf("%v", q.Damaged)
	}
}

// TestDamagedNode: only a cap that cannot be read keeps tasks from a node.
func TestDamagedNode(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]string{"maxthreads": "x", "run": "-1", "trials": "x", "quarantined": "x", "trial_at": "-1"} {
		n := task.ParseNode("n", map[string]string{field: value})
		refused(t, n.Damaged.Err(), field)
		if blocked := n.MaxThreads == task.AtMost(0); blocked != (field == "maxthreads") || n.Run != 0 || !n.Quarantined.IsZero() {
			t.Errorf("%s: %+v", field, n)
		}
		if field == "maxthreads" {
			if err := n.Set(field, "2"); err != nil || n.Damaged != nil || n.MaxThreads != task.AtMost(2) {
				t.Errorf("%+v, %v", n, err)
			}
		}
	}
}

// TestOddDemands: a demand that the claim could not count exactly fits nobody.
func TestOddDemands(t *testing.T) {
	t.Parallel()
	offer := task.Offer{Resources: task.Resources{"gpu": 4, "mem": 9}}
	for _, text := range []string{"gpu=2,gpu=2", "mem=1,gpu=1", "gpu=01", "gpu", "gpu=1,", "gpu=0", "Gpu=1"} {
		if why := task.Unfit(task.Bucket{Resources: text}, task.ParseQueue("q", nil), offer); len(why) != 1 || why[0].Kind != task.KindResource {
			t.Errorf("%q: %v", text, why)
		}
	}
	if why := task.Unfit(task.Bucket{Resources: "gpu=1,mem=1"}, task.ParseQueue("q", nil), offer); len(why) != 0 {
		t.Errorf("%v", why)
	}
}
