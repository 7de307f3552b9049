package audit

import (
	"context"
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/task"
)

// blobs audits what was uploaded: all that is counted must be there, and so must be what the tasks that have not ended need.
// It comes after the walk over the tasks, which says what that is.
func (a *auditor) blobs(ctx context.Context) error {
	var wrong []Violation
	for look, before := 1, []string(nil); ; look++ {
		found, err := a.store.Doubtful(ctx)
		if err != nil {
			return err
		}
		if len(found) == 0 || look >= looks && slices.Equal(found, before) {
			for _, text := range found {
				wrong = append(wrong, Violation{Kind: Blob, Text: text})
			}
			break
		}
		if look == maxLooks || !timing.Pause(ctx, a.pause) {
			break // they never stop moving
		}
		before = found
	}
	for _, hash := range slices.Sorted(maps.Keys(a.needed)) {
		_, there, err := a.store.BlobSize(ctx, hash)
		if err != nil {
			return err
		}
		if !there {
			wrong = append(wrong, sprint(a.needed[hash], Blob, "it needs the upload of sha256 %s, which is not in Redis; upload it again", hash))
		}
	}
	a.say(wrong...)
	return ctx.Err()
}

// need notes which uploads a task needs that has not ended.
func (a *auditor) need(s *snapshot) {
	if s.Task.State.Terminal() {
		return
	}
	if hash := task.SourceSHA256(s.stamps["stdin"]); hash != "" && a.needed[hash] == 0 {
		a.needed[hash] = s.Task.ID
	}
	src, err := task.ParseSource(s.stamps["source"])
	upload := src.Kind == task.SourceBlob || src.Kind == task.SourceCommand && src.SHA256 != ""
	if err == nil && upload && a.needed[src.SHA256] == 0 {
		a.needed[src.SHA256] = s.Task.ID
	}
}
