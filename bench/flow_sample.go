package main

import (
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/statemachine"
)

// sample is what there was at one moment. Bytes are Redis' own figures.
type sample struct {
	// Seconds since the beginning.
	Seconds float64 `json:"seconds"`
	// Waiting are open tasks, Archived those in Redis, Purged those that have left it, Keys all keys.
	Waiting  int64 `json:"waiting"`
	Archived int64 `json:"archived"`
	Purged   int64 `json:"purged"`
	Keys     int64 `json:"keys"`
	// Memory is used_memory, Dataset the part of it that holds data; Resident is what the kernel has given to Redis.
	Memory   float64 `json:"used_memory"`
	Dataset  float64 `json:"used_memory_dataset"`
	Resident float64 `json:"used_memory_rss"`
	// Clients are the buffers of clients, FileBuffer that of the append-only file, Scripts all that is kept of Lua.
	Clients    float64 `json:"mem_clients_normal"`
	FileBuffer float64 `json:"mem_aof_buffer"`
	Scripts    float64 `json:"used_memory_vm_eval_and_scripts"`
	// Cached is the number of scripts that Redis remembers, Connections that of clients.
	Cached      float64 `json:"number_of_cached_scripts"`
	Connections float64 `json:"connected_clients"`
	// Reads is how often Redis has read from a connection so far.
	Reads float64 `json:"total_reads_processed"`
	// RedisCPU and OwnCPU are seconds of processor time so far: of Redis, and of all others together.
	RedisCPU float64 `json:"redis_cpu_seconds"`
	OwnCPU   float64 `json:"own_cpu_seconds"`
	// FileSize is the size of the append-only file, Rewrites how often it was written anew so far.
	FileSize float64 `json:"aof_current_size"`
	Rewrites float64 `json:"aof_rewrites"`
}

func (s *sample) done() int64 { return s.Archived + s.Purged }

func (f *flowRun) sample() (s sample, err error) {
	c, err := f.site.Store.Census(f.ctx)
	if err != nil {
		return s, err
	}
	keys, err := f.site.Redis.DB.DBSize(f.ctx).Result()
	if err != nil {
		return s, err
	}
	info, err := f.site.Redis.Figures(f.ctx)
	return sample{
		Seconds: time.Since(f.began).Seconds(), Waiting: c.Listed[statemachine.Open], Archived: c.Listed[statemachine.Archived],
		Purged: c.Purged, Keys: keys,
		Memory: info["used_memory"], Dataset: info["used_memory_dataset"], Resident: info["used_memory_rss"],
		Clients: info["mem_clients_normal"], FileBuffer: info["mem_aof_buffer"],
		Scripts: info["used_memory_vm_eval"] + info["used_memory_scripts"], Cached: info["number_of_cached_scripts"],
		Connections: info["connected_clients"], Reads: info["total_reads_processed"],
		RedisCPU: info["used_cpu_user"] + info["used_cpu_sys"], OwnCPU: site.ProcessorTime().Seconds(),
		FileSize: info["aof_current_size"], Rewrites: info["aof_rewrites"],
	}, err
}

// look takes a sample. With the first one after the warm-up it also looks what lies in Redis.
func (f *flowRun) look() error {
	s, err := f.sample()
	if err != nil {
		return err
	}
	f.say("%d archived after %.0f s: %.2f MB, %d waiting, %d left Redis",
		s.done(), s.Seconds, s.Memory/1e6, s.Waiting, s.Purged)
	f.Samples = append(f.Samples, s)
	if f.WarmUp < len(f.Samples)-1 {
		return nil
	}
	purged, err := f.site.Store.PurgedCount(f.ctx)
	if err == nil && !f.isWarm(purged) {
		f.WarmUp = len(f.Samples)
	} else if err == nil {
		err = f.survey(warmedUp)
	}
	return err
}

// isWarm reports whether tasks of all outcomes have left Redis: from then on one goes for each that comes.
func (f *flowRun) isWarm(purged map[statemachine.State]int64) bool {
	for _, r := range f.retention() {
		if purged[r.Outcome] == 0 {
			return false
		}
	}
	return true
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
func (f *flowRun) survey(look int) error {
	var cursor uint64
	for {
		keys, next, err := f.site.Redis.DB.Scan(f.ctx, cursor, "*", surveyPage).Result()
		if err != nil {
			return err
		}
		if err := f.weigh(look, keys); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// weigh adds what some keys take.
func (f *flowRun) weigh(look int, keys []string) error {
	sizes := make([]*redis.IntCmd, len(keys))
	_, err := f.site.Redis.DB.Pipelined(f.ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			sizes[i] = p.MemoryUsage(f.ctx, key, 0)
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
