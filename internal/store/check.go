package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// Protocol is the version of the layout in Redis, "major.minor". A program
// refuses a namespace with a newer major version.
const Protocol = "1.1"

// ServerInfo is what [Store.Check] found out about Redis.
type ServerInfo struct {
	// Version of Redis, empty where it does not say (an embedded one).
	Version string
	// Warnings are sentences for the log: legal, but unwise.
	Warnings []string
}

// Check talks to Redis and refuses one that TDF cannot trust. It returns a
// *[SetupError] that matches [ErrUnreachable] (not there, unable to serve now,
// wrong password, wrong database, no replica under durability=ha), [ErrUnfit] (too
// old, a memory policy that evicts, not as durable as [redis] durability demands) or
// [ErrProtocol] (the namespace was written by a newer major version).
func (s *Store) Check(ctx context.Context) (ServerInfo, error) {
	if err := s.rdb.Ping(ctx).Err(); err != nil {
		return ServerInfo{}, s.connectError(err)
	}
	if err := s.checkProtocol(ctx); err != nil {
		return ServerInfo{}, err
	}
	text, err := s.rdb.Info(ctx).Result()
	if err != nil {
		switch failed := s.failed("info", err); {
		case ctx.Err() != nil:
			return ServerInfo{}, failed
		case errors.Is(failed, ErrUnreachable):
			return ServerInfo{}, s.connectError(err)
		}
		// An access list may forbid INFO, and an embedded Redis has few sections.
		return ServerInfo{Warnings: []string{"INFO is not available, so memory policy and persistence were not checked"}}, nil
	}
	return s.judge(ctx, parseInfo(text))
}

func (s *Store) checkProtocol(ctx context.Context) error {
	v, err := s.rdb.HGet(ctx, s.keys.meta(), "protocol").Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return s.connectError(err)
	}
	theirs, _, _ := strings.Cut(v, ".")
	ours, _, _ := strings.Cut(Protocol, ".")
	n, err := strconv.Atoi(theirs)
	if m, _ := strconv.Atoi(ours); err == nil && n <= m {
		return nil
	}
	return &SetupError{
		Setting: "[tdf] namespace", Value: s.namespace,
		Err:    fmt.Errorf("%w: it was written with protocol %s, this program knows %s", ErrProtocol, quote(v), Protocol),
		Remedy: "upgrade this program, or use another namespace",
	}
}

func (s *Store) judge(ctx context.Context, info map[string]string) (ServerInfo, error) {
	si := ServerInfo{Version: info["redis_version"]}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		return si, &SetupError{
			Setting: "maxmemory-policy of " + s.where.String(), Value: policy,
			Err: fmt.Errorf("%w: it would delete tasks when memory is short", ErrUnfit), Remedy: "set it to noeviction",
		}
	}
	if olderThan(si.Version, 6, 2) {
		return si, &SetupError{
			Setting: "version of " + s.where.String(), Value: si.Version,
			Err: fmt.Errorf("%w: it is too old", ErrUnfit), Remedy: "use Redis 6.2 or newer",
		}
	}
	if info["role"] == "slave" {
		return si, &SetupError{
			Setting: "[redis] host", Value: s.where.String(),
			Err: fmt.Errorf("%w: it is a replica", ErrUnfit), Remedy: "name the master, or use sentinel_master",
		}
	}
	err := s.judgeDurability(ctx, info, &si)
	return si, err
}

// connectError says what in [redis] is wrong.
func (s *Store) connectError(err error) error {
	e := &SetupError{Setting: s.address(), Value: s.where.String(), Err: s.failed("connect", err)}
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"), strings.Contains(text, "without any password"):
		e.Setting, e.Value = "[redis] password", ""
		e.Err = fmt.Errorf("%w at %s: the password (or user name) is refused", ErrUnreachable, s.where.String())
		e.Remedy = "set password (and username), TDF_REDIS_PASSWORD or password_file to what the server expects"
	case strings.Contains(text, "DB index"):
		e.Setting, e.Value = "[redis] db", strconv.Itoa(s.where.DB)
		e.Err = fmt.Errorf("%w: the server has no such database: %w", ErrUnreachable, err)
		e.Remedy = "use a smaller number (servers have 16 databases unless set otherwise, a cluster only 0)"
	case strings.Contains(text, "NOPERM"):
		e.Setting, e.Value = "[redis] username", s.where.Username
		e.Err = fmt.Errorf("%w: the user lacks a permission: %w", ErrUnreachable, err)
		e.Remedy = "allow the user all keys that start with " + quote(s.keys.prefix)
	case strings.HasPrefix(text, "LOADING "):
		e.Remedy = "wait until Redis has loaded its data"
	default:
		e.Remedy = "check these settings, and that redis-server runs there"
		if h := hindered(text); h != nil {
			e.Setting, e.Value, e.Remedy = h.setting+" of "+s.where.String(), "", h.remedy
		}
	}
	return e
}

// address names the settings that say where Redis is.
func (s *Store) address() string {
	switch {
	case s.where.Cluster():
		return "[redis] cluster_addrs"
	case s.where.Sentinel():
		return "[redis] sentinel_master, sentinel_addrs"
	default:
		return "[redis] host, port"
	}
}

func parseInfo(text string) map[string]string {
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
func (s *Store) PublishGrace(ctx context.Context, grace statemachine.Duration) error {
	if err := s.rdb.HSet(ctx, s.keys.meta(), "timeout_grace", grace.Text(), "protocol", Protocol).Err(); err != nil {
		return s.failed("publish", err)
	}
	return nil
}

// Grace returns what a server has published by [Store.PublishGrace], or
// [DefaultGrace] seconds where none has: published tells the two apart.
func (s *Store) Grace(ctx context.Context) (grace statemachine.Duration, published bool, err error) {
	return s.published(ctx, "timeout_grace", DefaultGrace*statemachine.Second)
}
