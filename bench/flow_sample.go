package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
)

// sample is what there was at one moment, by name: numbers of INFO under the names that they have there, and those that
// [flowRun.sample] adds. Bytes are Redis' own figures; those of processor time and of reads are sums so far.
type sample map[string]float64

func (s sample) done() float64 { return s["archived"] + s["purged"] }

func (f *flowRun) sample(ctx context.Context) (sample, error) {
	c, err := f.site.Store.Census(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := f.site.Redis.DB.DBSize(ctx).Result()
	if err != nil {
		return nil, err
	}
	info, err := f.site.Redis.Figures(ctx)
	s := sample{
		"seconds": time.Since(f.began).Seconds(), "waiting": float64(c.Listed[statemachine.Open]),
		"archived": float64(c.Listed[statemachine.Archived]), "purged": float64(c.Purged), "keys": float64(keys),
		"used_memory_vm_eval_and_scripts": info["used_memory_vm_eval"] + info["used_memory_scripts"],
		"redis_cpu_seconds":               info["used_cpu_user"] + info["used_cpu_sys"],
		"own_cpu_seconds":                 site.ProcessorTime().Seconds(),
	}
	for _, name := range []string{
		"used_memory", "used_memory_dataset", "used_memory_rss", "mem_clients_normal", "mem_aof_buffer", "number_of_cached_scripts",
		"connected_clients", "total_reads_processed", "aof_current_size", "aof_rewrites",
	} {
		s[name] = info[name]
	}
	return s, err
}

// look takes a sample. With the first one after the warm-up it also looks what lies in Redis.
func (f *flowRun) look(ctx context.Context) error {
	s, err := f.sample(ctx)
	if err != nil {
		return err
	}
	f.say("%.0f archived after %.0f s: %.2f MB, %.0f waiting, %.0f left Redis",
		s.done(), s["seconds"], s["used_memory"]/1e6, s["waiting"], s["purged"])
	f.Samples = append(f.Samples, s)
	if f.WarmUp < len(f.Samples)-1 {
		return nil
	}
	purged, err := f.site.Store.PurgedCount(ctx)
	if err != nil {
		return err
	}
	// Once tasks of all outcomes have left Redis, one goes for each that comes.
	if slices.ContainsFunc(f.retention(), func(r upkeep.Retention) bool { return purged[r.Outcome] == 0 }) {
		f.WarmUp = len(f.Samples)
		return nil
	}
	return f.survey(ctx, warmedUp)
}

// When what lies in Redis is looked at: after the warm-up, and when no more tasks are opened.
const (
	warmedUp = iota
	atEnd
	surveys
)

// kind is what all keys of a kind took then; 0 where nobody has looked.
type kind struct {
	Keys  [surveys]int64 `json:"keys"`
	Bytes [surveys]int64 `json:"bytes"`
}

// surveyPage is how many keys one command looks at.
const surveyPage = 1000

// survey looks what lies in Redis.
func (f *flowRun) survey(ctx context.Context, look int) error {
	var cursor uint64
	for {
		keys, next, err := f.site.Redis.DB.Scan(ctx, cursor, "*", surveyPage).Result()
		if err != nil {
			return err
		}
		if err := f.weigh(ctx, look, keys); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// weigh adds what some keys take.
func (f *flowRun) weigh(ctx context.Context, look int, keys []string) error {
	sizes := make([]*redis.IntCmd, len(keys))
	_, err := f.site.Redis.DB.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			sizes[i] = p.MemoryUsage(ctx, key, 0)
		}
		return nil
	})
	for i, key := range keys {
		name := kindOf(strings.TrimPrefix(key, f.site.Key("")))
		if f.Kinds[name] == nil {
			f.Kinds[name] = &kind{}
		}
		f.Kinds[name].Keys[look]++
		f.Kinds[name].Bytes[look] += sizes[i].Val() // 0 of a key that is gone
	}
	if err == redis.Nil { //nolint:errorlint // as the client returns it
		return nil
	}
	return err
}

// kindOf is the name of a key without what it belongs to: all that is said by numbers or free text.
func kindOf(key string) string {
	name, rest, found := strings.Cut(key, ":")
	switch {
	case !found:
		return name
	case name == "archived":
		return name + ":" + rest
	default:
		return name + ":…"
	}
}
