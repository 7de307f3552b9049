package store

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Origin is the epoch in which the ids of the namespace began: they begin anew with each flush, and go on when Redis has lost
// something.
func (s *Store) Origin(ctx context.Context) (int64, error) {
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return 0, err
	}
	if len(epochs) > 0 {
		return epochs[0].Number - 1, nil
	}
	text, err := s.rdb.HGet(ctx, s.keys.meta(), "epoch").Result()
	if err != nil && !isNil(err) {
		return 0, s.failed("origin", err)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	return 1, nil
}

// NoteArchive tells in Redis why archived tasks cannot be written to a server's archive, and so do not leave Redis; empty that
// they can again. [Sizes] has it.
func (s *Store) NoteArchive(ctx context.Context, problem string) error {
	return s.pipelined(ctx, "note archive", func(p redis.Pipeliner) {
		if problem == "" {
			p.HDel(ctx, s.keys.meta(), archiveError)
		} else {
			p.HSet(ctx, s.keys.meta(), archiveError, problem)
		}
	})
}

// archiveError is the field of meta that says why archived tasks cannot be written to an archive.
const archiveError = "archive_error"
