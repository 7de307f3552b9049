package main

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

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
func (f *flow) survey(look int) error {
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
func (f *flow) weigh(look int, keys []string) error {
	sizes := make([]*redis.IntCmd, len(keys))
	_, err := f.site.Redis.DB.Pipelined(f.ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			sizes[i] = p.MemoryUsage(f.ctx, key, 0)
		}
		return nil
	})
	for i, key := range keys {
		name := kindOf(strings.TrimPrefix(key, f.site.Key("")))
		if f.kinds[name] == nil {
			f.kinds[name] = &kind{}
		}
		f.kinds[name].Keys[look]++
		f.kinds[name].Bytes[look] += sizes[i].Val() // 0 of a key that is gone
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
