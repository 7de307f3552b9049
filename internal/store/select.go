package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Fields reads some hash fields of tasks, in the order of the ids: what a list
// or a wait needs, without outputs and logs. A task has no entry for a field it
// lacks; one that is not there, or is no hash, has a nil map.
func (s *Store) Fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error) {
	cmds := make([]*redis.SliceCmd, len(ids))
	err := s.pipelined(ctx, "read fields", func(p redis.Pipeliner) {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, s.keys.task(id), names...)
		}
	})
	if err != nil {
		return nil, err
	}
	found := make([]map[string]string, len(ids))
	for i, c := range cmds {
		found[i] = textsOf(names, c.Val())
	}
	return found, nil
}

// textsOf pairs names with the values that are there; nil if there are none.
func textsOf(names []string, values []any) map[string]string {
	var m map[string]string
	for i, v := range values {
		if text, ok := v.(string); ok {
			if m == nil {
				m = make(map[string]string, len(names))
			}
			m[names[i]] = text
		}
	}
	return m
}
