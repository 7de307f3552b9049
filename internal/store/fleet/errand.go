package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
)

// Ask has workers do an errand, and returns their answers by name: those that have come after the time patience, if not all
// have before. Workers that have not read it by then do not do it.
func (s *Fleet) Ask(ctx context.Context, errand string, workers []string, patience time.Duration) (answers map[string]string, err error) {
	request := conn.NewToken()
	if err := s.Redis.Set(ctx, s.Keys.Errand(request), errand, patience+askerGone).Err(); err != nil {
		return nil, s.Failed("ask", err)
	}
	defer s.forget(context.WithoutCancel(ctx), request, workers)
	answers = map[string]string{}
	called := time.Time{}
	pauses := timing.Backoff{First: 5 * time.Millisecond, Most: 200 * time.Millisecond}
	for end := time.Now().Add(patience); ; {
		silent := slices.DeleteFunc(slices.Clone(workers), func(name string) bool { _, ok := answers[name]; return ok })
		if len(silent) == 0 || time.Now().After(end) {
			return answers, nil
		}
		if time.Since(called) > callAgain {
			called = time.Now()
			if err := s.call(ctx, request, silent); err != nil {
				return nil, err
			}
		}
		timing.Pause(ctx, pauses.Next())
		if err := s.collect(ctx, request, silent, answers); err != nil {
			return nil, err
		}
	}
}

const (
	// askerGone is how long an errand stays after its time, if the asker cannot take it back.
	askerGone = 10 * time.Second
	// callAgain is how often workers are called that have not answered: one whose subscription is just
	// being made anew does not hear the first call.
	callAgain = time.Second
	// answerTTL is how long an answer stays that nobody fetches.
	answerTTL = time.Minute
	// maxAnswer is the most bytes of an answer, maxAnswers how many are read at once.
	maxAnswer  = 1 << 20
	maxAnswers = 32
)

// call tells workers of an errand.
func (s *Fleet) call(ctx context.Context, request string, workers []string) error {
	return s.Pipelined(ctx, "ask", func(p redis.Pipeliner) {
		for _, name := range workers {
			p.Publish(ctx, s.Keys.Call(name), request)
		}
	})
}

// collect adds the answers that have come from workers.
func (s *Fleet) collect(ctx context.Context, request string, from []string, answers map[string]string) error {
	for part := range slices.Chunk(from, maxAnswers) {
		come := make([]*redis.StringCmd, len(part))
		err := s.Pipelined(ctx, "ask", func(p redis.Pipeliner) {
			for i, name := range part {
				come[i] = p.Get(ctx, s.Keys.Answer(request, name))
			}
		})
		if err != nil {
			return err
		}
		for i, name := range part {
			if text, err := come[i].Result(); err == nil {
				answers[name] = text
			}
		}
	}
	return nil
}

// forget takes an errand back, with its answers. Where it cannot, they expire.
func (s *Fleet) forget(ctx context.Context, request string, workers []string) {
	_ = s.Pipelined(ctx, "ask", func(p redis.Pipeliner) {
		p.Del(ctx, s.Keys.Errand(request))
		for _, name := range workers {
			p.Del(ctx, s.Keys.Answer(request, name))
		}
	})
}

// Errand does for a worker what a request asks of it, and answers. It does nothing if nobody waits for that any more. The
// answer has at most 1 MiB.
func (s *Fleet) Errand(ctx context.Context, worker, request string, do func(errand string) string) error {
	text, err := s.Redis.Get(ctx, s.Keys.Errand(request)).Result()
	if conn.IsNil(err) {
		return nil
	}
	if err != nil {
		return s.Failed("errand", err)
	}
	answer := do(text)
	if len(answer) > maxAnswer {
		return fmt.Errorf("errand: the answer has %d bytes, of at most %d", len(answer), maxAnswer)
	}
	if err := s.Redis.Set(ctx, s.Keys.Answer(request, worker), answer, answerTTL).Err(); err != nil {
		return s.Failed("errand", err)
	}
	return nil
}
