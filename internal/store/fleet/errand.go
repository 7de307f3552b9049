package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// Ask has workers do an errand, and returns their answers by name: those that have come after the time patience, if not all
// have before. Workers that have not read it by then do not do it.
func (s *Fleet) Ask(ctx context.Context, errand string, workers []string, patience time.Duration) (answers map[string]string, err error) {
	request := conn.NewToken()
	if err := s.Redis.Set(ctx, s.Keys.Errand(request), errand, patience+askerGone).Err(); err != nil {
		return nil, s.Failed("ask", err)
	}
	defer func() { _ = s.Redis.Del(context.WithoutCancel(ctx), s.Keys.Errand(request)).Err() }() // else it expires
	return s.hear(ctx, request, workers, patience)
}

// hear calls workers and returns their answers.
func (s *Fleet) hear(ctx context.Context, request string, workers []string, patience time.Duration) (answers map[string]string, err error) {
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

// forget removes answers. Where it cannot, they expire.
func (s *Fleet) forget(ctx context.Context, request string, workers []string) {
	_ = s.Pipelined(ctx, "ask", func(p redis.Pipeliner) {
		for _, name := range workers {
			p.Del(ctx, s.Keys.Answer(request, name))
		}
	})
}

// Errand does for a worker what a request asks of it, and answers. It does nothing if nobody waits for that any more. The
// answer has at most 1 MiB.
func (s *Fleet) Errand(ctx context.Context, worker, request string, do func(errand string) string) error {
	text := question(request)
	if text == "" {
		var err error
		if text, err = s.Redis.Get(ctx, s.Keys.Errand(request)).Result(); conn.IsNil(err) {
			return nil
		}
		if err != nil {
			return s.Failed("errand", err)
		}
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

// question is the errand that stands in a request of another worker: to list a version. It is empty for a request of a manager.
func question(request string) string {
	_, version, is := strings.Cut(request, " ")
	if !is {
		return ""
	}
	text, err := json.Marshal(task.Errand{Versions: []string{version}})
	if err != nil {
		return "" // it cannot be
	}
	return string(text)
}

// mostKeepers is how many workers are named that keep a version, keepersPatience how long they may take to say so.
const (
	mostKeepers     = 64
	keepersPatience = 2 * time.Second
)

// Keepers asks the other workers that claim and may take tasks of a bucket who keeps a version of a program, as
// [task.Errand.Versions] has it. It returns those, at most 64, and how many were asked.
func (s *Fleet) Keepers(ctx context.Context, worker string, b task.Bucket, version string) (keep []string, asked int, err error) {
	rules, err := s.Rules(ctx, "")
	if err != nil {
		return nil, 0, err
	}
	all, _, err := s.Workers(ctx)
	if err != nil {
		return nil, 0, err
	}
	var others []string
	for i := range all {
		if w := &all[i]; w.Name != worker && !w.HandlersOnly && rules.Takes(w, b) {
			others = append(others, w.Name)
		}
	}
	if len(others) == 0 {
		return nil, 0, nil
	}
	answers, err := s.hear(ctx, conn.NewToken()+" "+version, others, keepersPatience)
	for _, name := range others {
		var stock task.Stock
		if json.Unmarshal([]byte(answers[name]), &stock) == nil && slices.ContainsFunc(stock.Versions, usable) && len(keep) < mostKeepers {
			keep = append(keep, name)
		}
	}
	return keep, len(others), err
}

// usable reports whether a worker can run a version that it has.
func usable(v task.StoredVersion) bool { return !v.Installed.IsZero() }
