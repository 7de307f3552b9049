package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// decisionFields are what a server reads of an executed task before it decides, `rev` last.
func decisionFields(round string) []string {
	return []string{
		"state", "round", "fails", "max_fails", "end_before", round + ":executed", round + ":error", "rev",
	}
}

// settle reads the tasks as a server would, and moves them to succeeded.
func (l *life) settle(ctx context.Context, tasks []ticket) error {
	keys := []string{keyTaskPrefix(), keyState("executed"), keyState("succeeded")}
	return l.decide(ctx, "settle", l.run.settle, keys, "server-1", tasks, l.readForDecision)
}

// archive reads the tasks whole, as a manager does for its handler, and moves them to archived.
func (l *life) archive(ctx context.Context, tasks []ticket) error {
	keys := []string{keyTaskPrefix(), keyState("succeeded"), keyState("archived")}
	return l.decide(ctx, "archive", l.run.archive, keys, "manager-1", tasks, l.readWhole)
}

// decide alternates reading a batch and moving it with the revisions read.
func (l *life) decide(ctx context.Context, step string, script *redis.Script, keys []string, who string,
	tasks []ticket, read func(context.Context, []ticket) (map[string]string, error)) error {
	for len(tasks) > 0 {
		n := min(l.batch, len(tasks))
		revs, err := read(ctx, tasks[:n])
		if err != nil {
			return fmt.Errorf("%s: reading: %w", step, err)
		}
		err = l.each(ctx, step, script, keys, []any{who}, tasks[:n], func(t ticket) []any {
			return []any{t.id, t.round, revs[t.id]}
		})
		if err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// readForDecision returns each task's rev by id.
func (l *life) readForDecision(ctx context.Context, tasks []ticket) (map[string]string, error) {
	revs := map[string]string{}
	cmds, err := l.srv.DB.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, t := range tasks {
			p.HMGet(ctx, keyTask(t.id), decisionFields(t.round)...)
		}
		return nil
	})
	for i, cmd := range cmds {
		values := cmd.(*redis.SliceCmd).Val()
		if len(values) > 0 {
			revs[tasks[i].id], _ = values[len(values)-1].(string)
		}
	}
	return revs, err
}

// readWhole does the same with every field read, and the log wherever the layout keeps it.
func (l *life) readWhole(ctx context.Context, tasks []ticket) (map[string]string, error) {
	revs := map[string]string{}
	var hashes []*redis.MapStringStringCmd
	_, err := l.srv.DB.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, t := range tasks {
			hashes = append(hashes, p.HGetAll(ctx, keyTask(t.id)))
			if l.layout.log == "key" {
				p.LRange(ctx, keyTask(t.id)+":log", 0, -1)
			}
		}
		return nil
	})
	for i, h := range hashes {
		revs[tasks[i].id] = h.Val()["rev"]
	}
	return revs, err
}
