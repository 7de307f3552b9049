package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// login returns a client that works as the limited user.
func login(t *testing.T, s *redistest.Server, u redistest.User) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: u.Name, Password: u.Password})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestLimitedUserWorksInItsNamespace(t *testing.T) {
	t.Parallel()
	s, ns := redistest.Shared(t), redistest.Namespace(t)
	u := s.Limited(t, ns)
	c := login(t, s, u)
	for _, key := range []string{ns + ":a", "{" + ns + "}:a"} {
		if err := c.Set(t.Context(), key, 1, 0).Err(); err != nil {
			t.Errorf("set %s: %v", key, err)
		}
	}
	script := "return redis.call('INCR', KEYS[1])"
	if err := c.Eval(t.Context(), script, []string{ns + ":a"}).Err(); err != nil {
		t.Errorf("script: %v", err)
	}
	if err := c.Publish(t.Context(), ns+":news", "x").Err(); err != nil {
		t.Errorf("publish: %v", err)
	}
	if err := c.Info(t.Context()).Err(); err != nil {
		t.Errorf("info: %v", err)
	}
	u.EnsureEmptyACLLog(t)
}

func TestLimitedUserIsRefusedElsewhere(t *testing.T) {
	t.Parallel()
	s, ns := redistest.Shared(t), redistest.Namespace(t)
	stray := redistest.Namespace(t) + ":k"
	refused := map[string][]any{
		"key":           {"SET", stray, "1"},
		"prefix only":   {"SET", ns + "x:k", "1"},
		"key in script": {"EVAL", "return redis.pcall('SET', ARGV[1], 1)", 0, stray},
		"channel":       {"PUBLISH", stray, "x"},
		"keys":          {"KEYS", ns + ":*"},
		"flushdb":       {"FLUSHDB"},
		"flushall":      {"FLUSHALL"},
		"config":        {"CONFIG", "GET", "*"},
	}
	for name, command := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := s.Limited(t, redistest.Namespace(t))
			if err := login(t, s, u).Do(t.Context(), command...).Err(); err == nil {
				t.Errorf("%v was allowed", command)
			}
			tb := &recorder{TB: t}
			u.EnsureEmptyACLLog(tb)
			if len(tb.errors) == 0 {
				t.Errorf("%v left nothing in the log of refusals", command)
			}
		})
	}
}
