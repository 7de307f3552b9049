package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/internal/base/config"
)

// longestLag is how far, in seconds, a replica may be behind that still counts for
// min-replicas-to-write, before a start warns: a failover may lose as much.
const longestLag = 10

// judgeDurability compares what [redis] durability promises with how the server is
// set up, and adds to the warnings.
func (s *Store) judgeDurability(ctx context.Context, info map[string]string, si *ServerInfo) error {
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
func (s *Store) judgeSafe(ctx context.Context, info map[string]string, si *ServerInfo) error {
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
func (s *Store) judgeHA(ctx context.Context, info map[string]string, si *ServerInfo) error {
	if !s.where.Sentinel() {
		return &SetupError{
			Setting: "[redis] durability", Value: config.DurabilityHA,
			Err:    fmt.Errorf("%w: nobody would replace a master that dies", ErrUnfit),
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
			Err: fmt.Errorf("%w: durability=ha needs one that is connected", ErrUnreachable), Remedy: "start them",
		}
	}
	lag, err := s.setting(ctx, "min-replicas-max-lag", si)
	if n, failed := strconv.Atoi(lag); err == nil && failed == nil && n > longestLag {
		si.warn("min-replicas-max-lag is %d s: as much may be lost when another master takes over (set it to 2)", n)
	}
	return err
}

// unfit says which setting of the Redis server must be another one.
func (s *Store) unfit(setting, value, problem, want string) error {
	return &SetupError{
		Setting: setting + " of " + s.where.String(), Value: value,
		Err: fmt.Errorf("%w: %s", ErrUnfit, problem), Remedy: "set it to " + want,
	}
}

// setting reads a setting of the server. Where that is forbidden it is empty, and
// a warning says so.
func (s *Store) setting(ctx context.Context, name string, si *ServerInfo) (string, error) {
	found, err := s.rdb.ConfigGet(ctx, name).Result()
	if err == nil {
		return found[name], nil
	}
	switch failed := s.failed("config", err); {
	case ctx.Err() != nil:
		return "", failed
	case errors.Is(failed, ErrUnreachable):
		return "", s.connectError(err)
	}
	si.warn("CONFIG GET is not allowed, so %s was not checked (durability=%s)", name, s.where.Durability)
	return "", nil
}
