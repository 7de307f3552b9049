package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/ops/access"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const password = "some-password"

// form is a user in one of the two forms of rules.
type form struct {
	role access.Role
	old  bool
}

func (f form) String() string { return fmt.Sprintf("%s, old %v", f.role, f.old) }

// start runs a Redis that takes the rules. It gives new users all channels, as Redis 6.2 does, and has all its commands
// switched on: only the rules refuse any.
func (f form) start(t *testing.T) *redistest.Server {
	t.Helper()
	options := []redistest.Option{redistest.WithConfig("acl-pubsub-default", "allchannels")}
	if f.old && os.Getenv("TDF_TEST_REDIS62") != "" {
		return redistest.Start(t, append(options, redistest.WithRedis62())...)
	}
	return redistest.Start(t, append(options, redistest.WithConfig("enable-debug-command", "yes"),
		redistest.WithConfig("enable-module-command", "yes"))...)
}

func forms() (all []form) {
	for _, role := range access.Roles() {
		all = append(all, form{role, false}, form{role, true})
	}
	return all
}

// create makes the user in Redis and returns a client that works as it.
func create(t *testing.T, s *redistest.Server, u access.User) *redis.Client {
	t.Helper()
	u.PasswordHash = access.Hash(password)
	words, err := u.Rules()
	if err != nil {
		t.Fatal(err)
	}
	s.Do(t, append([]string{"ACL", "SETUSER", u.Login()}, words...)...)
	c := redis.NewClient(&redis.Options{
		Network: "unix", Addr: s.Socket(), Username: u.Login(), Password: password, Protocol: 2, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// command is a command, or one of its subcommands, of the server under test.
type command struct {
	name         string // config|get
	arity, first int
	open         bool // needs no permission, as AUTH
}

// call is the command with so many words, each the same.
func (c *command) call(word string) []any {
	var call []any
	for part := range strings.SplitSeq(c.name, "|") {
		call = append(call, part)
	}
	switch c.name {
	case "evalsha":
		return append(call, strings.Repeat("0", 40), "1", word)
	case "xread":
		return append(call, "streams", word, "0")
	}
	n := c.arity
	if n < 0 {
		n = -n
	}
	for len(call) < n {
		call = append(call, word)
	}
	return call
}

// commandsOf asks Redis for all it knows.
func commandsOf(t *testing.T, s *redistest.Server) []command {
	t.Helper()
	list, _ := s.Do(t, "COMMAND").([]any)
	all := make([]command, 0, len(list))
	for _, entry := range list {
		fields, _ := entry.([]any)
		all = append(all, one(fields))
		if len(fields) > 9 {
			subcommands, _ := fields[9].([]any)
			for _, sub := range subcommands {
				words, _ := sub.([]any)
				all = append(all, one(words))
			}
		}
	}
	if len(all) < 300 {
		t.Fatalf("redis names only %d commands", len(all))
	}
	return all
}

func one(fields []any) command {
	name, _ := fields[0].(string)
	arity, _ := fields[1].(int64)
	first, _ := fields[3].(int64)
	flags, _ := fields[2].([]any)
	return command{
		name: name, arity: int(arity), first: int(first),
		open: slices.Contains(flags, any("no_auth")),
	}
}

// listed are the commands that the rules of a user allow.
func listed(t *testing.T, u access.User) map[string]bool {
	t.Helper()
	words, err := u.Rules()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, w := range words {
		for part := range strings.FieldsSeq(strings.Trim(w, "()")) {
			if name, ok := strings.CutPrefix(part, "+"); ok {
				all[name] = true
			}
		}
	}
	return all
}

// Each role may use the commands of its list, and every other command that Redis
// knows is refused. Nothing dangerous is on any list.
func TestOtherCommandsAreRefused(t *testing.T) {
	t.Parallel()
	s := (form{}).start(t)
	all := commandsOf(t, s)
	for i, f := range forms() {
		u := access.User{Role: f.role, Namespace: "ns", Name: fmt.Sprint("u", i), Old: f.old}
		c, list := create(t, s, u), listed(t, u)
		refused := 0
		for _, cmd := range all {
			parent, _, _ := strings.Cut(cmd.name, "|")
			switch {
			case cmd.open || list[cmd.name] || list[parent]:
				continue
			case strings.Contains(cmd.name, "|") || !slices.ContainsFunc(all, func(o command) bool {
				return strings.HasPrefix(o.name, cmd.name+"|")
			}):
				refused++
				if err := c.Do(t.Context(), cmd.call("ns:meta")...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
					t.Fatalf("%v may use %s: %v", f, cmd.name, err)
				}
			}
		}
		if refused < 200 {
			t.Errorf("%v: only %d commands are refused", f, refused)
		}
	}
}

// Some commands no role has, whatever else changes.
func TestNothingDangerousIsListed(t *testing.T) {
	t.Parallel()
	never := fields("eval function config config|set acl acl|setuser debug monitor keys scan flushall flushdb shutdown " +
		"replicaof restore dump migrate module save bgsave client client|kill object script script|flush script|kill swapdb rename copy")
	for _, f := range forms() {
		list := listed(t, access.User{Role: f.role, Namespace: "ns", Old: f.old, LoadScripts: true})
		for _, name := range never {
			if list[name] {
				t.Errorf("%v may use %s", f, name)
			}
		}
		if f.role == access.Viewer {
			for _, name := range fields("hset hdel del set zadd zrem sadd srem lpush publish xadd blpop expire incr hincrby") {
				if list[name] {
					t.Errorf("a viewer may use %s", name)
				}
			}
		}
	}
}

func fields(text string) []string { return strings.Fields(text) }

// withKeys are the commands of a list that name keys.
func withKeys(all []command, list map[string]bool) (found []command) {
	for _, cmd := range all {
		if list[cmd.name] && (cmd.first > 0 || cmd.name == "evalsha" || cmd.name == "xread") {
			found = append(found, cmd)
		}
	}
	return found
}

// No command reaches a key outside the namespace; each reaches some key in it.
func TestForeignKeysAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	all := commandsOf(t, s)
	for i, f := range forms() {
		for j, ns := range []string{"ns", "{ns}", "n^s"} {
			u := access.User{Role: f.role, Namespace: ns, Name: fmt.Sprint("u", i, "-", j), Old: f.old}
			c := create(t, s, u)
			data := withKeys(all, listed(t, u))
			if len(data) < 20 {
				t.Fatalf("%v: only %d commands have keys", f, len(data))
			}
			for _, cmd := range data {
				if err := c.Do(t.Context(), cmd.call(ns+":meta")...).Err(); err != nil && strings.HasPrefix(err.Error(), "NOPERM") &&
					cmd.name != "blpop" {
					t.Errorf("%v: %s is refused on a key of %s: %v", f, cmd.name, ns, err)
				}
				for _, key := range []string{"other:meta", "meta", "task:1", "ns2:meta", "xns:meta", "NS:meta", ns, "{" + ns + "}:meta", ":meta", "*"} {
					if err := c.Do(t.Context(), cmd.call(key)...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
						t.Errorf("%v of %s: %s is not refused on %s: %v", f, ns, cmd.name, key, err)
					}
				}
			}
		}
	}
}

// Inside scripts the rules are the same, also for keys that nobody declared, and
// on foreign channels.
func TestScriptsAndChannels(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	sha, _ := s.Do(t, "SCRIPT", "LOAD", "return redis.call(ARGV[1], ARGV[2], ARGV[3], ARGV[4])").(string)
	for i, f := range forms() {
		c := create(t, s, access.User{Role: f.role, Namespace: "ns", Name: fmt.Sprint("u", i), Old: f.old})
		own := func(args ...any) error {
			return c.Do(t.Context(), append([]any{"EVALSHA", sha, 1, "ns:meta"}, args...)...).Err()
		}
		if err := own("HSET", "ns:meta", "a", "b"); (err == nil) != (f.role != access.Viewer) {
			t.Errorf("%v writes in a script: %v", f, err)
		}
		if err := own("HMGET", "ns:meta", "a", "b"); err != nil {
			t.Errorf("%v reads in a script: %v", f, err)
		}
		for _, args := range [][]any{
			{"HSET", "other:meta", "a", "b"}, {"HMGET", "other:meta", "a", "b"}, {"SET", "x", "1", "NX"}, {"RESTORE", "ns:meta", "0", "x"},
		} {
			if err := own(args...); err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "ACL failure") &&
				!strings.Contains(err.Error(), "can't run this command") && !strings.Contains(err.Error(), "can't access") {
				t.Errorf("%v: %v in a script: %v", f, args, err)
			}
		}
		for _, channel := range []string{"other:changed", "changed", "*"} {
			for _, verb := range []string{"PUBLISH", "SUBSCRIBE"} {
				args := []any{verb, channel, "x"}
				if err := c.Do(t.Context(), args[:len(args)-flag(verb == "SUBSCRIBE")]...).Err(); err == nil {
					t.Errorf("%v: %s %s is not refused", f, verb, channel)
				}
			}
		}
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// What a role does not change is not to be changed by it, where rules can say so.
func TestNarrowKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, c := range []struct {
		role access.Role
		call []any
	}{
		{access.Worker, []any{"HSET", "ns:queue:q", "paused", "1"}},
		{access.Worker, []any{"SADD", "ns:queues", "q"}},
		{access.Worker, []any{"SET", "ns:task_id", "1"}},
		{access.Worker, []any{"ZADD", "ns:failed", "1", "1"}},
		{access.Worker, []any{"HSET", "ns:managers", "a", "b"}},
		{access.Worker, []any{"GET", "ns:request:k"}},
		{access.Worker, []any{"HGET", "ns:tokens", "id"}},
		{access.Viewer, []any{"HSET", "ns:tokens", "id", "x"}},
		{access.Manager, []any{"SET", "ns:claim:w", "1"}},
		{access.Manager, []any{"ZADD", "ns:lease", "1", "w"}},
		{access.Manager, []any{"HSET", "ns:epochs", "1", "x"}},
		{access.Viewer, []any{"HSET", "ns:meta", "a", "b"}},
	} {
		u := access.User{Role: c.role, Namespace: "ns", Name: "narrow-" + string(c.role)}
		if err := create(t, s, u).Do(t.Context(), c.call...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: %v: %v", c.role, c.call, err)
		}
	}
}

// A user reaches the database of its configuration and no other.
func TestDatabase(t *testing.T) {
	t.Parallel()
	for _, f := range forms() {
		c := create(t, f.start(t), access.User{Role: f.role, Namespace: "ns", Database: 3, Old: f.old})
		for db, allowed := range []bool{0: false, 1: false, 3: true, 13: false} {
			for _, verb := range []string{"SELECT", "select"} {
				if err := c.Do(t.Context(), verb, db).Err(); allowed != (err == nil) {
					t.Errorf("%v: %s %d: %v", f, verb, db, err)
				}
			}
		}
	}
}

// Redis loads the lines from a file as they are printed, also of odd namespaces.
func TestLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.acl")
	write(t, file, "user default on nopass ~* &* +@all\n")
	s := redistest.Start(t, redistest.WithConfig("aclfile", file))
	var lines strings.Builder
	for i, ns := range []string{"ns", "{ns}", "n'1", `n"1`, "n^1", "ä", "(x)", "%R~x", "a,b"} {
		for _, f := range forms() {
			u := access.User{Role: f.role, Namespace: ns, Name: fmt.Sprint("u", i, f.role, f.old), Old: f.old}
			c := create(t, s, u)
			if err := c.HGet(t.Context(), ns+":meta", "a").Err(); !errors.Is(err, redis.Nil) {
				t.Errorf("%v of %s: %v", f, ns, err)
			}
			line, err := u.Line()
			if err != nil || strings.Contains(line, "\n") || !strings.Contains(line, " "+access.Placeholder+" ") {
				t.Errorf("line %q, %v", line, err)
			}
			lines.WriteString(strings.Replace(line, access.Placeholder, access.Hash(password), 1) + "\n")
		}
	}
	before := s.Do(t, "ACL", "LIST")
	write(t, file, "user default on nopass ~* &* +@all\n"+lines.String())
	s.Do(t, "ACL", "LOAD")
	if after := s.Do(t, "ACL", "LIST"); !cmp.Equal(before, after) {
		t.Errorf("the file makes other users than ACL SETUSER: %s", cmp.Diff(before, after))
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Redis takes no line with the placeholder.
func TestPlaceholderIsRefused(t *testing.T) {
	t.Parallel()
	u := access.User{Role: access.Viewer, Namespace: "ns"}
	words, err := u.Rules()
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: redistest.Shared(t).Socket()})
	defer func() { _ = c.Close() }()
	args := []any{"ACL", "SETUSER", "with-placeholder"}
	for _, w := range words {
		args = append(args, w)
	}
	if err := c.Do(t.Context(), args...).Err(); err == nil || !strings.Contains(err.Error(), "hash") {
		t.Errorf("set a user with a placeholder: %v", err)
	}
}

// What cannot be a user is refused.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for _, ns := range []string{"", "a*", "a?", "[a]", `a\`, "a b", "a:b", "a\n"} {
		if _, err := (&access.User{Role: access.Viewer, Namespace: ns}).Rules(); !errors.Is(err, config.ErrInvalid) {
			t.Errorf("namespace %q: %v", ns, err)
		}
	}
	if _, err := (&access.User{Role: access.Viewer, Namespace: "n", Name: "a b"}).Rules(); !errors.Is(err, access.ErrName) {
		t.Errorf("name with a blank: %v", err)
	}
	if _, err := (&access.User{Role: "king", Namespace: "n"}).Rules(); !errors.Is(err, access.ErrRole) {
		t.Errorf("unknown role: %v", err)
	}
	if _, err := access.ParseRole("king"); !errors.Is(err, access.ErrRole) {
		t.Errorf("unknown role: %v", err)
	}
	if u := (access.User{Role: access.Worker, Namespace: "{sum}"}); u.Login() != "tdf-worker-sum" {
		t.Errorf("login %q", u.Login())
	}
}
