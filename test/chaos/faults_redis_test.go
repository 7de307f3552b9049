package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// redisCards are the faults of Redis.
func (tr *trial) redisCards() []card {
	kill := func(c class, before func(t *testing.T)) card {
		return card{c, func(t *testing.T) bool { t.Helper(); return tr.killRedis(t, c, before) }}
	}
	return []card{
		kill(redisKill, func(*testing.T) {}), kill(redisForgets, tr.cutFile),
		{redisFreeze, tr.freezeRedis}, {scriptFlush, tr.flushScripts}, {clockStep, tr.stepClock},
	}
}

// redisHit reports whether Redis is away already, and excuses those that give up if
// it will be.
func (tr *trial) redisHit(d time.Duration) bool {
	if tr.redisAway {
		return false
	}
	tr.redisAway = true
	tr.trouble = time.Now().Add(d + afterTrouble)
	return true
}

// killRedis kills Redis, which loses nothing that it has written to its file, and
// starts it again within a lease. What is done before that may change the file.
func (tr *trial) killRedis(t *testing.T, c class, before func(t *testing.T)) bool {
	t.Helper()
	d := tr.absence(lease)
	if !tr.redisHit(d) {
		return false
	}
	tr.Server.Kill(t)
	tr.redisDied = time.Now().Round(0)
	tr.later(d, func(t *testing.T) {
		t.Helper()
		before(t)
		tr.Server.Restart(t) // and waits until it answers
		tr.redisAway = false
		tr.trouble = time.Now().Add(afterTrouble)
		tr.watch.await(c, settledMore())
	})
	return true
}

// forgotten is how much of its file Redis loses at most: about a second of work.
const forgotten = 20_000

// cutFile cuts off the end of the file that Redis writes, as the loss of power
// does, and mends it as docs/OPERATIONS.md says: Redis itself leaves the first half of
// a transaction that is cut in the file, and carries it out when it starts once more.
func (tr *trial) cutFile(t *testing.T) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(filepath.Dir(tr.Server.Socket()), "appendonlydir", "*.incr.aof"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("the append-only file is not found: %v", err)
	}
	slices.Sort(parts)
	newest := parts[len(parts)-1]
	info, err := os.Stat(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(newest, max(0, info.Size()-1-tr.rnd.Int64N(forgotten))); err != nil {
		t.Fatal(err)
	}
	fix := exec.CommandContext(t.Context(), "redis-check-aof", "--fix", newest)
	fix.Stdin = strings.NewReader("y\n")
	if out, err := fix.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", fix.Args, err, out)
	}
	tr.forgot = append(tr.forgot, tr.redisDied)
}

// freezeRedis stops Redis for up to a lease and a half: connections stay open, and
// nothing is answered.
func (tr *trial) freezeRedis(t *testing.T) bool {
	t.Helper()
	d := tr.absence(lease * 3 / 2)
	if !tr.redisHit(d) {
		return false
	}
	tr.Server.Pause(t)
	tr.later(d, func(t *testing.T) {
		t.Helper()
		tr.Server.Resume(t)
		tr.redisAway = false
		tr.watch.await(redisFreeze, settledMore())
	})
	return true
}

// flushScripts makes Redis forget all scripts, as a failover does.
func (tr *trial) flushScripts(t *testing.T) bool {
	t.Helper()
	if tr.redisAway {
		return false // it does not answer
	}
	tr.Server.Do(t, "SCRIPT", "FLUSH")
	tr.watch.await(scriptFlush, settledMore())
	return true
}

// steps are how far the clock of Redis is set, back or forward.
var steps = []time.Duration{-time.Hour, -30 * second, 30 * second, time.Hour}

// stepClock sets the clock of Redis, and later sets it right. Where Redis is killed
// meanwhile, that is a failover to a host with another clock.
func (tr *trial) stepClock(t *testing.T) bool {
	t.Helper()
	if tr.clockOff {
		return false
	}
	tr.clockOff = true
	tr.clock.Set(t, steps[tr.rnd.IntN(len(steps))])
	tr.watch.await(clockStep, settledMore())
	tr.later(tr.absence(longest), func(t *testing.T) {
		t.Helper()
		tr.clock.Set(t, 0)
		tr.clockOff = false
		tr.watch.await(clockStep, archivedMore())
	})
	return true
}
