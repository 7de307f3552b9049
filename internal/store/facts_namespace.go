package store

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// Sizes is how much a namespace holds, as far as that is cheap to ask.
type Sizes struct {
	// Archived are the tasks that nobody needs any more, Events the entries of
	// the stream, SetAside the damaged tasks.
	Archived, Events, SetAside int64
	// Epoch is the present one. Behind says that a client has seen more of the
	// history than Redis has, and that no server has opened a new epoch since.
	Epoch  int64
	Behind bool
	// Unconfirmed says that no server has confirmed the life of Redis, so that no task can be opened.
	Unconfirmed bool
	// ArchiveError is why a server cannot write archived tasks to its archive, empty if nothing is known to be wrong.
	ArchiveError string
	// PurgeTurn is until when a server has the turn to let archived tasks go; 0 if none has ever had it.
	PurgeTurn statemachine.Time
}

// Sizes reads them, and changes nothing.
func (s *Store) Sizes(ctx context.Context) (Sizes, error) {
	var archived, events, aside *redis.IntCmd
	var past *redis.SliceCmd
	err := s.pipelined(ctx, "sizes", func(p redis.Pipeliner) {
		archived = p.ZCard(ctx, s.keys.state(statemachine.Archived))
		events = p.XLen(ctx, s.keys.events())
		aside = p.HLen(ctx, s.keys.setAside())
		past = p.HMGet(ctx, s.keys.meta(), "epoch", "witness", archiveError, "purging", "unconfirmed")
	})
	if err != nil {
		return Sizes{}, err
	}
	texts := reply(past.Val())
	sizes := Sizes{
		Archived: archived.Val(), Events: events.Val(), SetAside: aside.Val(), Epoch: 1,
		ArchiveError: texts.text(2), Unconfirmed: texts.text(4) != "",
	}
	if n, err := strconv.ParseInt(texts.text(0), 10, 64); err == nil {
		sizes.Epoch = n
	}
	if _, till, found := strings.Cut(texts.text(3), " "); found {
		sizes.PurgeTurn, _ = statemachine.ParseTime(till)
	}
	epoch, _, _ := strings.Cut(texts.text(1), " ")
	if n, err := strconv.ParseInt(epoch, 10, 64); err == nil {
		sizes.Behind = n >= sizes.Epoch
	}
	return sizes, nil
}
