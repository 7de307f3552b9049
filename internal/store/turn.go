package store

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Turn is the end of some rounds and the claim of the next ones: [Store.Apply] and then [Store.Claim], in one trip to Redis.
// Each is carried out, or not, as it would be alone.
type Turn struct {
	Outcomes []Outcome
	// Moved is the error of the moves, as that of Apply.
	Moved error
	Reply ClaimReply
	// Claimed is the error of the claim, as that of Claim.
	Claimed error
}

// Turn makes the moves, at least one, and claims.
func (s *Store) Turn(ctx context.Context, orders []Order, req ClaimRequest) (t Turn) {
	move, err := s.moves(orders)
	if err != nil {
		return Turn{Moved: err, Claimed: err}
	}
	claim, err := s.claim(&req)
	if err != nil {
		return Turn{Moved: err, Claimed: err}
	}
	answers := s.together(ctx, move, claim)
	if t.Moved = answers[0].err; t.Moved == nil {
		t.Outcomes, t.Moved = s.outcomes(orders, answers[0].value)
	}
	if t.Claimed = answers[1].err; t.Claimed == nil {
		t.Reply, t.Claimed = s.claimed(&req, answers[1].value)
	}
	return t
}

// scriptArgs is a script and what it is called with.
type scriptArgs struct {
	name string
	keys []string
	args []any
}

// scriptAnswer is what became of a call.
type scriptAnswer struct {
	value any
	err   error
}

// together calls scripts one after the other, in one trip where that can be. Where each
// has to be confirmed by a replica it takes its own.
func (s *Store) together(ctx context.Context, calls ...scriptArgs) []scriptAnswer {
	answers := make([]scriptAnswer, len(calls))
	alone := s.where.Durability == config.DurabilityHA
	if !alone {
		s.inOneTrip(ctx, calls, answers)
	}
	for i, c := range calls {
		if alone || unsent(answers[i].err) {
			answers[i].value, answers[i].err = s.run(ctx, c.name, c.keys, c.args...)
		}
	}
	return answers
}

// unsent reports whether a script did nothing for a reason that a call of it alone takes care of.
func unsent(err error) bool {
	return redis.HasErrorPrefix(err, "NOSCRIPT") || errors.Is(err, errFlushing)
}

// inOneTrip sends the calls at once and reads the answers.
func (s *Store) inOneTrip(ctx context.Context, calls []scriptArgs, answers []scriptAnswer) {
	commands := make([]*redis.Cmd, len(calls))
	_, all := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range calls {
			keys, args := s.withHistory(c.keys, c.args)
			commands[i] = s.scripts.byName[c.name].EvalSha(ctx, p, keys, args...)
		}
		return nil
	})
	for i, c := range calls {
		v, err := commands[i].Result()
		switch {
		case all != nil && !isAnswer(all): // the commands themselves may not say it
			answers[i].err = s.failed(c.name, all)
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			answers[i].err = err
		case err != nil:
			answers[i].err = s.failed(c.name, err)
		default:
			answers[i].value, answers[i].err = s.unseal(c.name, asReply(v))
		}
	}
}
