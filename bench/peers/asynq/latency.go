package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

// latencies are what each task took from just before it was enqueued to the start of its handler.
type latencies struct {
	Milliseconds []float64 `json:"latencies_ms"`
}

// measureLatency enqueues tasks one by one at a steady rate while a server waits for them. The first ones, o.warm, are
// not measured.
func measureLatency(ctx context.Context, o options) (latencies, error) {
	redis, queue := o.redis()
	client := asynq.NewClient(redis)
	defer func() { _ = client.Close() }()
	start, all := time.Now(), o.warm+o.tasks
	took := make(chan time.Duration, all)
	srv := asynq.NewServer(redis, o.config(queue))
	err := srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		enqueued, err := strconv.ParseInt(string(t.Payload()), 10, 64)
		took <- time.Since(start) - time.Duration(enqueued)
		return err
	}))
	if err != nil {
		return latencies{}, fmt.Errorf("starting the asynq server: %w", err)
	}
	defer srv.Shutdown()
	steps := time.NewTicker(time.Second / time.Duration(o.rate))
	defer steps.Stop()
	var rep latencies
	for i := range all {
		select {
		case <-ctx.Done():
			return latencies{}, fmt.Errorf("%d of %d tasks enqueued: %w", i, all, ctx.Err())
		case <-steps.C:
		}
		if err := enqueueOne(ctx, client, queue, strconv.FormatInt(int64(time.Since(start)), 10)); err != nil {
			return latencies{}, err
		}
	}
	for i := range all {
		select {
		case <-ctx.Done():
			return latencies{}, fmt.Errorf("%d of %d tasks begun: %w", i, all, ctx.Err())
		case d := <-took:
			if i >= o.warm {
				rep.Milliseconds = append(rep.Milliseconds, d.Seconds()*1000)
			}
		}
	}
	return rep, nil
}
