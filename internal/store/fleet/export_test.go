package fleet

import (
	"context"

	"github.com/tdf-go/tdf/task"
)

// AddQueueAs is [Fleet.AddQueue] with the id of its call.
func (s *Fleet) AddQueueAs(ctx context.Context, id string, q task.QueueSpec) error {
	rules, err := s.Rules(ctx, "")
	if err != nil {
		return err
	}
	_, err = s.write(ctx, "add", id, &rules, s.queueCall(&q))
	return err
}
