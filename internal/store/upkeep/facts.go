package upkeep

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
)

// Facts is what Redis says of itself and of this connection, for a diagnosis. What
// the user may not ask is left empty.
type Facts struct {
	// Info are all lines of INFO by name; nil if it is not allowed.
	Info map[string]string
	// Settings are those lines of redis.conf that matter here; nil if CONFIG GET
	// is not allowed.
	Settings map[string]string
	// Pings are how long some PINGs took, in the order they were made.
	Pings []time.Duration
	// Skew is how far the clock of Redis is ahead of this host's, and Margin by
	// how much that may be wrong: half of what the answer took.
	Skew, Margin time.Duration
	// SlowCalls is the length of the slow log, -1 if asking is not allowed.
	SlowCalls int64
	// User is who is logged in, empty if Redis does not say.
	User string
	// Login is the user as Redis has it, nil if it may not ask for them: then it
	// is no administrator.
	Login *Login
}

// Login is a user of Redis.
type Login struct {
	// NoPassword says that any password is right.
	NoPassword bool
	// Commands, Keys and Channels are the rules, as ACL LIST writes them.
	Commands, Keys, Channels string
}

// pings is how many round trips a diagnosis measures.
const pings = 20

// factSettings are the lines of redis.conf that a diagnosis looks at. None of them
// holds a secret.
var factSettings = []string{
	"appendfsync", "save", "min-replicas-to-write", "min-replicas-max-lag", "protected-mode", "slowlog-log-slower-than", "maxmemory",
	"hash-max-listpack-value",
}

// Facts asks Redis for all of it. The error matches [task.ErrUnreachable] if Redis does
// not answer; a refusal is no error.
func (s *Upkeep) Facts(ctx context.Context) (Facts, error) {
	f := Facts{SlowCalls: -1}
	for _, read := range []func(context.Context, *Facts) error{
		s.readPings, s.readClock, s.readInfo, s.readSettings, s.readSlowLog, s.readLogin,
	} {
		if err := read(ctx, &f); err != nil {
			return f, s.Failed("facts", err)
		}
	}
	return f, nil
}

// refused reports whether an answer says that the user, or this kind of Redis,
// has no such command.
func refused(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown") || redis.HasErrorPrefix(err, "ERR")
}

func unlessRefused(err error) error {
	if refused(err) {
		return nil
	}
	return err
}

func (s *Upkeep) readPings(ctx context.Context, f *Facts) error {
	for range pings {
		began := time.Now()
		if err := s.Redis.Ping(ctx).Err(); err != nil {
			return err //nolint:wrapcheck // Facts does
		}
		f.Pings = append(f.Pings, time.Since(began))
	}
	return nil
}

func (s *Upkeep) readClock(ctx context.Context, f *Facts) error {
	began := time.Now()
	theirs, err := s.Redis.Time(ctx).Result()
	took := time.Since(began)
	f.Margin = took / 2
	f.Skew = theirs.Sub(began.Add(f.Margin))
	return err //nolint:wrapcheck // Facts does
}

func (s *Upkeep) readInfo(ctx context.Context, f *Facts) error {
	text, err := s.Redis.Info(ctx).Result()
	if err == nil {
		f.Info = conn.ParseInfo(text)
	}
	return unlessRefused(err)
}

func (s *Upkeep) readSettings(ctx context.Context, f *Facts) error {
	for _, name := range factSettings {
		found, err := s.Redis.ConfigGet(ctx, name).Result()
		if err != nil {
			return unlessRefused(err)
		}
		if f.Settings == nil {
			f.Settings = make(map[string]string, len(factSettings))
		}
		f.Settings[name] = found[name]
	}
	return nil
}

func (s *Upkeep) readSlowLog(ctx context.Context, f *Facts) error {
	n, err := s.Redis.SlowLogLen(ctx).Result()
	if err == nil {
		f.SlowCalls = n
	}
	return unlessRefused(err)
}

func (s *Upkeep) readLogin(ctx context.Context, f *Facts) error {
	name, err := s.asked(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return unlessRefused(err)
	}
	f.User = name
	answer, err := s.asked(ctx, "ACL", "GETUSER", name).Slice()
	if err != nil {
		return unlessRefused(err)
	}
	f.Login = decodeLogin(conn.Reply(answer))
	return nil
}

// asked sends a question for which go-redis has no method.
func (s *Upkeep) asked(ctx context.Context, question ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, question...)
	_ = s.Patient.Process(ctx, cmd) // the command has the error
	return cmd
}

// decodeLogin reads the answer to ACL GETUSER, names and values in turns. Keys
// and channels are texts since Redis 7, lists before.
func decodeLogin(answer conn.Reply) *Login {
	rules := map[string]string{}
	for i := 0; i+1 < len(answer); i += 2 {
		rules[answer.Text(i)] = cmp.Or(answer.Text(i+1), strings.Join(answer.List(i+1).Texts(), " "))
	}
	return &Login{
		NoPassword: slices.Contains(strings.Fields(rules["flags"]), "nopass"),
		Commands:   rules["commands"], Keys: rules["keys"], Channels: rules["channels"],
	}
}

// Sizes is how much a namespace holds, as far as that is cheap to ask.
type Sizes struct {
	// Archived are the tasks that nobody needs any more, Events the entries of
	// the stream, DeadLetters the dead letters.
	Archived, Events, DeadLetters int64
	// Epoch is the present one. Behind says that a client has seen more of the
	// history than Redis has, and that no server has opened a new epoch since.
	Epoch  int64
	Behind bool
	// Unconfirmed says that no server has confirmed the life of Redis, so that no task can be opened.
	Unconfirmed bool
	// ArchiveError is why a server cannot write archived tasks to its archive, empty if nothing is known to be wrong.
	ArchiveError string
	// PurgeLease is until when a server has the turn to let archived tasks go; 0 if none has ever had it.
	PurgeLease statemachine.Time
}

// Sizes reads them, and changes nothing.
func (s *Upkeep) Sizes(ctx context.Context) (Sizes, error) {
	var archived, events, aside *redis.IntCmd
	var past *redis.SliceCmd
	err := s.Pipelined(ctx, "sizes", func(p redis.Pipeliner) {
		archived = p.ZCard(ctx, s.Keys.State(statemachine.Archived))
		events = p.XLen(ctx, s.Keys.Events())
		aside = p.HLen(ctx, s.Keys.DeadLetters())
		past = p.HMGet(ctx, s.Keys.Meta(), "epoch", "witness", archiveError, "purging", "unconfirmed")
	})
	if err != nil {
		return Sizes{}, err
	}
	texts := conn.Reply(past.Val())
	sizes := Sizes{
		Archived: archived.Val(), Events: events.Val(), DeadLetters: aside.Val(), Epoch: 1,
		ArchiveError: texts.Text(2), Unconfirmed: texts.Text(4) != "",
	}
	if n, err := strconv.ParseInt(texts.Text(0), 10, 64); err == nil {
		sizes.Epoch = n
	}
	if _, till, found := strings.Cut(texts.Text(3), " "); found {
		sizes.PurgeLease, _ = statemachine.ParseTime(till)
	}
	epoch, _, _ := strings.Cut(texts.Text(1), " ")
	if n, err := strconv.ParseInt(epoch, 10, 64); err == nil {
		sizes.Behind = n >= sizes.Epoch
	}
	return sizes, nil
}
