package conn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Protocol is the version of the layout in Redis, "major.minor". A program
// refuses a namespace with another major version.
const Protocol = "1.1"

// ServerInfo is what [Conn.Check] found out about Redis.
type ServerInfo struct {
	// Version of Redis, empty where it does not say (an embedded one).
	Version string
	// Warnings are sentences for the log: legal, but unwise.
	Warnings []string
}

// Check talks to Redis and refuses one that TDF cannot trust. It returns a
// *[SetupError] that matches [task.ErrUnreachable] (not there, unable to serve now,
// wrong password, wrong database, no replica under durability=ha), [task.ErrUnfit] (too
// old, a memory policy that evicts, not as durable as [redis] durability demands) or
// [task.ErrProtocol] (the namespace was written by another major version).
func (s *Conn) Check(ctx context.Context) (ServerInfo, error) {
	if err := s.Redis.Ping(ctx).Err(); err != nil {
		return ServerInfo{}, s.connectError(err)
	}
	if err := s.checkProtocol(ctx); err != nil {
		return ServerInfo{}, err
	}
	text, err := s.Redis.Info(ctx).Result()
	if err != nil {
		switch failed := s.Failed("info", err); {
		case ctx.Err() != nil:
			return ServerInfo{}, failed
		case errors.Is(failed, task.ErrUnreachable):
			return ServerInfo{}, s.connectError(err)
		}
		// An access list may forbid INFO, and an embedded Redis has few sections.
		return ServerInfo{Warnings: []string{"INFO is not available, so memory policy and persistence were not checked"}}, nil
	}
	return s.judge(ctx, ParseInfo(text))
}

func (s *Conn) checkProtocol(ctx context.Context) error {
	v, err := s.Redis.HGet(ctx, s.Keys.Meta(), "protocol").Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return s.connectError(err)
	}
	ours, _, _ := strings.Cut(Protocol, ".")
	theirs, _, _ := strings.Cut(v, ".")
	remedy := "upgrade this program, or use another namespace"
	n, err := strconv.Atoi(theirs)
	switch m, _ := strconv.Atoi(ours); {
	case err == nil && n == m:
		return nil
	case err == nil && n < m:
		remedy = "finish and export its tasks with the programs that wrote it, or use another namespace"
	}
	return &SetupError{
		Setting: "[tdf] namespace", Value: s.namespace,
		Err:    fmt.Errorf("%w: it was written with protocol %s, this program knows %s", task.ErrProtocol, Quote(v), Protocol),
		Remedy: remedy,
	}
}

func (s *Conn) judge(ctx context.Context, info map[string]string) (ServerInfo, error) {
	si := ServerInfo{Version: info["redis_version"]}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		return si, &SetupError{
			Setting: "maxmemory-policy of " + s.where.String(), Value: policy,
			Err: fmt.Errorf("%w: it would delete tasks when memory is short", task.ErrUnfit), Remedy: "set it to noeviction",
		}
	}
	if olderThan(si.Version, 6, 2) {
		return si, &SetupError{
			Setting: "version of " + s.where.String(), Value: si.Version,
			Err: fmt.Errorf("%w: it is too old", task.ErrUnfit), Remedy: "use Redis 6.2 or newer",
		}
	}
	if info["role"] == "slave" {
		return si, &SetupError{
			Setting: "[redis] host", Value: s.where.String(),
			Err: fmt.Errorf("%w: it is a replica", task.ErrUnfit), Remedy: "name the master, or use sentinel_master",
		}
	}
	err := s.judgeDurability(ctx, info, &si)
	return si, err
}

// connectError says what in [redis] is wrong.
func (s *Conn) connectError(err error) error {
	e := &SetupError{Setting: s.address(), Value: s.where.String(), Err: s.Failed("connect", err)}
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"), strings.Contains(text, "without any password"):
		e.Setting, e.Value = "[redis] password", ""
		e.Err = fmt.Errorf("%w at %s: the password (or user name) is refused", task.ErrUnreachable, s.where.String())
		e.Remedy = "set password (and username), TDF_REDIS_PASSWORD or password_file to what the server expects"
	case strings.Contains(text, "DB index"):
		e.Setting, e.Value = "[redis] db", strconv.Itoa(s.where.DB)
		e.Err = fmt.Errorf("%w: the server has no such database: %w", task.ErrUnreachable, err)
		e.Remedy = "use a smaller number (servers have 16 databases unless set otherwise, a cluster only 0)"
	case strings.Contains(text, "NOPERM"):
		e.Setting, e.Value = "[redis] username", s.where.Username
		e.Err = fmt.Errorf("%w: the user lacks a permission: %w", task.ErrUnreachable, err)
		e.Remedy = "allow the user all keys that start with " + Quote(s.Keys.prefix)
	case strings.HasPrefix(text, "LOADING "):
		e.Remedy = "wait until Redis has loaded its data"
	default:
		e.Remedy = "check these settings, and that redis-server runs there"
		if h := hindered(text); h != nil {
			e.Setting, e.Value, e.Remedy = h.setting+" of "+s.where.String(), "", h.remedy
			e.Err = &hinderedError{h, s.where.String(), err}
		}
	}
	return e
}

// address names the settings that say where Redis is.
func (s *Conn) address() string {
	switch {
	case s.where.Cluster():
		return "[redis] cluster_addrs"
	case s.where.Sentinel():
		return "[redis] sentinel_master, sentinel_addrs"
	default:
		return "[redis] host, port"
	}
}

// Info is what Redis says of itself in a section of INFO, by name. It may say nothing: an access list may forbid to ask, and an
// embedded Redis does not know it all. The error matches [task.ErrUnreachable], or is that of ctx.
func (s *Conn) Info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.Redis.Info(ctx, section).Result()
	if err == nil {
		return ParseInfo(text), nil
	}
	if err = s.Failed("info", err); errors.Is(err, task.ErrUnreachable) || ctx.Err() != nil {
		return nil, err
	}
	return map[string]string{}, nil
}

// ParseInfo reads an answer to INFO: values by name.
func ParseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func olderThan(version string, major, minor int) bool {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return false
	}
	return a < major || a == major && b < minor
}

// PublishGrace tells all programs of the namespace how long the server leaves
// an overdue round to its worker.
func (s *Conn) PublishGrace(ctx context.Context, grace statemachine.Duration) error {
	if err := s.Redis.HSet(ctx, s.Keys.Meta(), "timeout_grace", grace.Text(), "protocol", Protocol).Err(); err != nil {
		return s.Failed("publish", err)
	}
	return nil
}

// longestLag is how far, in seconds, a replica may be behind that still counts for
// min-replicas-to-write, before a start warns: a failover may lose as much.
const longestLag = 10

// judgeDurability compares what [redis] durability promises with how the server is
// set up, and adds to the warnings.
func (s *Conn) judgeDurability(ctx context.Context, info map[string]string, si *ServerInfo) error {
	if info["aof_enabled"] == "0" && s.where.Durability != config.DurabilitySafe {
		si.warn("Redis keeps no append-only file: tasks of the last minutes are lost if it crashes (appendonly yes)")
	}
	switch s.where.Durability {
	case config.DurabilitySafe:
		return s.judgeSafe(ctx, info, si)
	case config.DurabilityHA:
		return s.judgeHA(ctx, info, si)
	default:
		return nil
	}
}

func (si *ServerInfo) warn(format string, args ...any) {
	si.Warnings = append(si.Warnings, fmt.Sprintf(format, args...))
}

// judgeSafe demands that what is acknowledged is on the disk.
func (s *Conn) judgeSafe(ctx context.Context, info map[string]string, si *ServerInfo) error {
	if info["aof_enabled"] == "0" {
		return s.unfit("appendonly", "no", "durability=safe needs the append-only file", "yes, or write durability=fast")
	}
	policy, err := s.setting(ctx, "appendfsync", si)
	if err == nil && policy != "" && policy != "always" {
		err = s.unfit("appendfsync", policy,
			"durability=safe needs each change on disk before it is acknowledged", "always, or write durability=fast")
	}
	return err
}

// judgeHA demands that what is acknowledged survives the loss of the master.
func (s *Conn) judgeHA(ctx context.Context, info map[string]string, si *ServerInfo) error {
	if !s.where.Sentinel() {
		return &SetupError{
			Setting: "[redis] durability", Value: config.DurabilityHA,
			Err:    fmt.Errorf("%w: no Sentinel replaces a master that dies", task.ErrUnfit),
			Remedy: "set sentinel_master and sentinel_addrs, or write durability=safe or fast",
		}
	}
	// The line is there only if replicas are demanded.
	if _, demanded := info["min_slaves_good_slaves"]; !demanded {
		return s.unfit("min-replicas-to-write", "0",
			"durability=ha needs a master that refuses changes which no replica would get", "1, and min-replicas-max-lag to 2")
	}
	if n, _ := strconv.Atoi(info["connected_slaves"]); n < 1 {
		return &SetupError{
			Setting: "replicas of " + s.where.String(), Value: "none",
			Err: fmt.Errorf("%w: durability=ha needs one that is connected", task.ErrUnreachable), Remedy: "start them",
		}
	}
	lag, err := s.setting(ctx, "min-replicas-max-lag", si)
	if n, failed := strconv.Atoi(lag); err == nil && failed == nil && n > longestLag {
		si.warn("min-replicas-max-lag is %d s: as much may be lost when another master takes over (set it to 2)", n)
	}
	return err
}

// unfit says which setting of the Redis server must be another one.
func (s *Conn) unfit(setting, value, problem, want string) error {
	return &SetupError{
		Setting: setting + " of " + s.where.String(), Value: value,
		Err: fmt.Errorf("%w: %s", task.ErrUnfit, problem), Remedy: "set it to " + want,
	}
}

// setting reads a setting of the server. Where that is forbidden it is empty, and
// a warning says so.
func (s *Conn) setting(ctx context.Context, name string, si *ServerInfo) (string, error) {
	found, err := s.Redis.ConfigGet(ctx, name).Result()
	if err == nil {
		return found[name], nil
	}
	switch failed := s.Failed("config", err); {
	case ctx.Err() != nil:
		return "", failed
	case errors.Is(failed, task.ErrUnreachable):
		return "", s.connectError(err)
	}
	si.warn("CONFIG GET is not allowed, so %s was not checked (durability=%s)", name, s.where.Durability)
	return "", nil
}

// Published reads a time span that servers set for all, and reports whether one has.
func (s *Conn) Published(
	ctx context.Context, field string, otherwise statemachine.Duration,
) (d statemachine.Duration, set bool, err error) {
	text, err := s.Redis.HGet(ctx, s.Keys.Meta(), field).Result()
	if IsNil(err) {
		return otherwise, false, nil
	}
	if err != nil {
		return 0, false, s.Failed(field, err)
	}
	if d, err = statemachine.ParseDuration(text); err != nil {
		return 0, false, fmt.Errorf("meta %s: %w", field, err)
	}
	return d, true, nil
}
