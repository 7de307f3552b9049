package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/statemachine"
)

// GateRun is how many failures in a row close the gate of a node: then it
// claims nothing until a server has judged.
const GateRun = blame.GateRun

// Track is how the rounds of one program on one node ended: the successes and
// failures since the evidence of the program began, less than an hour ago;
// the failures since the last success of anything on the node; and how many of
// those were the first of their task.
type Track struct{ Good, Bad, Run, Fresh int }

// evidenceTTL is for how many seconds evidence is gathered before it begins anew.
const evidenceTTL = 3600

// Evidence returns for each program how it went on each node.
func (s *Store) Evidence(ctx context.Context, programs ...string) (map[string]map[string]Track, error) {
	if len(programs) == 0 {
		return map[string]map[string]Track{}, nil
	}
	cmds := make([]*redis.MapStringStringCmd, len(programs))
	err := s.pipelined(ctx, "evidence", func(p redis.Pipeliner) {
		for i, program := range programs {
			cmds[i] = p.HGetAll(ctx, s.keys.evidence(program))
		}
	})
	if err != nil {
		return nil, err
	}
	// The eras are read after the records: a run that has ended since is over.
	eras, err := s.eras(ctx, cmds)
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]Track, len(programs))
	for i, program := range programs {
		all[program] = map[string]Track{}
		for node, text := range cmds[i].Val() {
			if t, ok := trackOf(text, eras[node]); ok {
				all[program][node] = t
			}
		}
	}
	return all, nil
}

// trackOf reads a record. What failed in another era of the node is no run of
// now.
func trackOf(text string, now int64) (t Track, ok bool) {
	era := int64(0)
	if _, err := fmt.Sscanf(text, "%d %d %d %d %d", &t.Good, &t.Bad, &t.Run, &t.Fresh, &era); err != nil {
		return Track{}, false
	}
	if era != now {
		t.Run, t.Fresh = 0, 0
	}
	return t, true
}

// eras reads how many runs of each node named in the records have ended.
func (s *Store) eras(ctx context.Context, records []*redis.MapStringStringCmd) (map[string]int64, error) {
	names := map[string]*redis.StringCmd{}
	for _, c := range records {
		for node := range c.Val() {
			names[node] = nil
		}
	}
	if len(names) == 0 {
		return map[string]int64{}, nil
	}
	err := s.pipelined(ctx, "evidence", func(p redis.Pipeliner) {
		for _, node := range slices.Sorted(maps.Keys(names)) {
			names[node] = p.HGet(ctx, s.keys.node(node), "era")
		}
	})
	eras := make(map[string]int64, len(names))
	for node, c := range names {
		eras[node], _ = c.Int64() // a node without has had none
	}
	return eras, err
}

// PublishQuarantine says whether claims honour the gate of a node: off, warn or
// on; and that a server is there, for [Store.ServerSeen].
func (s *Store) PublishQuarantine(ctx context.Context, mode string) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	if err := s.rdb.HSet(ctx, s.keys.meta(), "quarantine", mode, "server_seen", now.Text()).Err(); err != nil {
		return s.failed("publish", err)
	}
	return nil
}

// Quarantine is what a server has published last; warn if none has.
func (s *Store) Quarantine(ctx context.Context) (string, error) {
	mode, err := s.rdb.HGet(ctx, s.keys.meta(), "quarantine").Result()
	if err != nil && !isNil(err) {
		return "", s.failed("quarantine", err)
	}
	return cmp.Or(mode, "warn"), nil
}

// ServerSeen is when a server has published its settings last, which it does
// every repair_interval; 0 if none has.
func (s *Store) ServerSeen(ctx context.Context) (statemachine.Time, error) {
	text, err := s.rdb.HGet(ctx, s.keys.meta(), "server_seen").Result()
	if err != nil && !isNil(err) {
		return 0, s.failed("server", err)
	}
	f := fieldReader{get: func(string) string { return text }}
	return f.stamp("server_seen"), f.err
}
