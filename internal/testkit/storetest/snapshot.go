package storetest

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Both are scripts, so that programs that are at work never see half of it.
const (
	saveScript = `local all = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  all[#all + 1], all[#all + 2], all[#all + 3] = key, redis.call('DUMP', key), math.max(0, redis.call('PTTL', key))
end
return all`
	restoreScript = `for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end
for i = 2, #ARGV, 3 do redis.call('RESTORE', ARGV[i], ARGV[i + 2], ARGV[i + 1]) end`
)

// Snapshot keeps what the namespace holds now. The result puts that back in place of
// what is there then, in one moment: as a failover does that loses the last
// writes, or a restored backup.
func (sp *Space) Snapshot(tb testing.TB) (back func()) {
	tb.Helper()
	saved, err := sp.Raw.Eval(tb.Context(), saveScript, nil, Pattern(sp.Namespace)).Slice()
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		tb.Helper()
		args := append([]any{Pattern(sp.Namespace)}, saved...)
		if err := sp.Raw.Eval(tb.Context(), restoreScript, nil, args...).Err(); err != nil && !isNil(err) {
			tb.Fatal(err)
		}
	}
}

// Anew empties the namespace, its history too, and gives the space a Store that has
// seen nothing of it.
func (sp *Space) Anew(tb testing.TB) {
	tb.Helper()
	if keys := sp.Raw.Keys(tb.Context(), Pattern(sp.Namespace)).Val(); len(keys) > 0 {
		if err := sp.Raw.Del(tb.Context(), keys...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	sp.Store = sp.Dial(tb)
}

func isNil(err error) bool { return errors.Is(err, redis.Nil) }
