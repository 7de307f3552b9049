package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const (
	defaultLimit = 2 * time.Minute
	taskType     = "noop"
)

// options say what to measure and where.
type options struct {
	network, addr      string
	tasks, concurrency int
	enqueuers, warm    int
	rate               int
	check, limit       time.Duration
	command            []string // followed by the number of the task
}

func (o options) validate() error {
	for name, value := range map[string]int{"tasks": o.tasks, "concurrency": o.concurrency, "enqueuers": o.enqueuers} {
		if value < 1 {
			return fmt.Errorf("-%s=%d: must be at least 1", name, value)
		}
	}
	for name, value := range map[string]int{"rate": o.rate, "warm": o.warm} {
		if value < 0 {
			return fmt.Errorf("-%s=%d: must not be negative", name, value)
		}
	}
	if o.check < time.Millisecond {
		return fmt.Errorf("-check-interval=%s: must be at least 1ms", o.check)
	}
	if o.network != "tcp" && o.network != "unix" {
		return fmt.Errorf("-network=%q: must be tcp or unix", o.network)
	}
	return nil
}

// redis is how the Redis is reached. Tasks left by an interrupted run would be counted as ours: each run has a queue of
// its own.
func (o options) redis() (opt asynq.RedisClientOpt, queue string) {
	opt = asynq.RedisClientOpt{Network: o.network, Addr: o.addr, PoolSize: max(o.concurrency, o.enqueuers) + 4}
	return opt, "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

func (o options) config(queue string) asynq.Config {
	return asynq.Config{
		Concurrency: o.concurrency, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: o.check,
	}
}

// report is what one measurement found.
type report struct {
	Tasks          int     `json:"tasks"`
	EnqueueSeconds float64 `json:"enqueue_seconds"` // one by one, by so many callers
	ProcessSeconds float64 `json:"process_seconds"` // from the start of the server to the end of the last handler
	PerSecond      float64 `json:"per_second"`      // tasks through both phases, one after the other
}

// measure enqueues all tasks and then processes them.
func measure(ctx context.Context, o options) (rep report, err error) {
	var enqueue, process time.Duration
	for _, n := range []int{o.warm, o.tasks} {
		if n == 0 {
			continue
		}
		if enqueue, process, err = life(ctx, o, n); err != nil {
			return report{}, err
		}
	}
	return report{
		Tasks: o.tasks, EnqueueSeconds: enqueue.Seconds(), ProcessSeconds: process.Seconds(),
		PerSecond: float64(o.tasks) / (enqueue + process).Seconds(),
	}, nil
}

func life(ctx context.Context, o options, n int) (enqueue, process time.Duration, err error) {
	redis, queue := o.redis()
	if enqueue, err = enqueueAll(ctx, redis, queue, o.enqueuers, n); err != nil {
		return 0, 0, err
	}
	process, err = processAll(ctx, redis, queue, o, n)
	return enqueue, process, err
}

func enqueueAll(ctx context.Context, redis asynq.RedisClientOpt, queue string, callers, n int) (time.Duration, error) {
	client := asynq.NewClient(redis)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	var next atomic.Int64
	start := time.Now()
	for range callers {
		calls.Go(func() {
			for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
				if err := enqueueOne(ctx, client, queue, strconv.FormatInt(i, 10)); err != nil {
					cancel(fmt.Errorf("task %d: %w", i, err))
				}
			}
		})
	}
	calls.Wait()
	return time.Since(start), context.Cause(ctx)
}

func enqueueOne(ctx context.Context, client *asynq.Client, queue, payload string) error {
	_, err := client.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(payload)), asynq.Queue(queue), asynq.MaxRetry(0))
	if err != nil {
		return fmt.Errorf("enqueueing: %w", err)
	}
	return nil
}

func processAll(ctx context.Context, redis asynq.RedisClientOpt, queue string, o options, n int) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	failed := make(chan error, 1)
	handler := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		if err := work(ctx, o.command, string(t.Payload())); err != nil {
			select {
			case failed <- err:
			default:
			}
			return err
		}
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	})
	srv := asynq.NewServer(redis, o.config(queue))
	start := time.Now()
	if err := srv.Start(handler); err != nil {
		return 0, fmt.Errorf("starting the asynq server: %w", err)
	}
	defer srv.Shutdown()
	select {
	case <-done:
		return time.Since(start), nil
	case err := <-failed:
		return 0, fmt.Errorf("a task failed: %w", err)
	case <-ctx.Done():
		return 0, fmt.Errorf("%d of %d tasks left: %w", left.Load(), n, ctx.Err())
	}
}

// work runs the command with the task number as its last word, if there is one; it should echo that word.
func work(ctx context.Context, command []string, number string) error {
	if len(command) == 0 {
		return nil
	}
	args := append(append([]string{}, command[1:]...), number)
	out, err := exec.CommandContext(ctx, command[0], args...).Output()
	if err != nil {
		return err
	}
	if len(out) == 0 {
		return errors.New("the program printed nothing: it should echo its argument")
	}
	return nil
}
