package archive

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The newest tasks are those that sorting all of them gives, whatever comes in which order.
func TestNewestTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 6).Draw(t, "most")
		top := newestTasks{most: most}
		best := map[Key]Head{}
		for range rapid.IntRange(0, 60).Draw(t, "records") {
			id := rapid.Int64Range(1, 12).Draw(t, "id")
			h := Head{ID: id, Rev: rapid.Int64Range(1, 4).Draw(t, "rev"), Archived: fmt.Sprint(id * 7 % 5)}
			if old, there := best[h.Key()]; !there || old.Rev < h.Rev {
				best[h.Key()] = h
			}
			if top.wants(&h) {
				top.add(&h, fmt.Append(nil, h.ID, " ", h.Rev))
			}
		}
		var sorted []Head
		for _, h := range best {
			sorted = append(sorted, h)
		}
		slices.SortFunc(sorted, func(a, b Head) int {
			return cmp.Or(cmp.Compare(b.ArchivedAt(), a.ArchivedAt()), cmp.Compare(b.ID, a.ID))
		})
		var want, got []string
		for _, h := range sorted[:min(most, len(sorted))] {
			want = append(want, fmt.Sprint(h.ID, " ", h.Rev))
		}
		for _, one := range top.sorted() {
			got = append(got, string(one.line))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
