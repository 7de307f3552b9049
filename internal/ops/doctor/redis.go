package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
)

// judgeVersion compares the version with known weaknesses. A distribution mends
// its packages without raising the version of Redis, so that it can only be a warning.
func judgeVersion(f *Facts) []Finding {
	const check = "version"
	version := f.Server.Info["redis_version"]
	if version == "" {
		return warn(check, "Redis does not tell its version", "allow INFO to this user, or look at the version by hand")
	}
	var open []string
	for _, h := range holes {
		if len(h.fixed) > 0 && !mended(version, h.fixed) {
			open = append(open, h.id+" ("+h.what+")")
		}
	}
	if len(open) == 0 {
		return ok(check, "Redis "+version+"; see the security notices of its maker for what came later")
	}
	return warn(check, fmt.Sprintf("Redis %s: by its version open to %s", version, strings.Join(open, ", ")),
		"upgrade Redis. The package of a distribution may be mended all the same: its changelog names the ids, and also "+unversioned())
}

// unversioned are the weaknesses that only a changelog tells of.
func unversioned() string {
	var ids []string
	for _, h := range holes {
		if len(h.fixed) == 0 {
			ids = append(ids, h.id)
		}
	}
	return strings.Join(ids, ", ")
}

// mended reports whether a version has a fix that came with these versions.
func mended(version string, fixed []string) bool {
	mine := numbers(version)
	for _, f := range fixed {
		theirs := numbers(f)
		if mine[0] == theirs[0] && mine[1] == theirs[1] {
			return mine[2] >= theirs[2]
		}
	}
	newest := slices.MaxFunc(fixed, func(a, b string) int { return compare(numbers(a), numbers(b)) })
	return compare(mine, numbers(newest)) > 0
}

func compare(a, b [3]int) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
}

// numbers are the first three parts of a version; what is no number is 0.
func numbers(version string) (n [3]int) {
	for i, part := range strings.SplitN(version, ".", 3) {
		n[i], _ = strconv.Atoi(part)
	}
	return n
}

// hole is a known weakness of Redis.
type hole struct {
	id, what string
	// fixed are the first versions without it, one a release line. A line that is not named has no
	// fix, unless it is newer than all of them.
	fixed []string
}

// holes are weaknesses that matter where somebody may log in or connect. Versions are those of the
// advisories of the Redis project (github.com/redis/redis/security/advisories). An id without
// versions is known from the changelog of Debian's package only, which says there
// which package has the fix.
var holes = []hole{
	{"CVE-2024-31449", "Lua: a script runs code of its own", []string{"6.2.16", "7.2.6", "7.4.1"}},
	{"CVE-2024-46981", "Lua: a script runs code of its own", []string{"6.2.17", "7.2.7", "7.4.2"}},
	{"CVE-2025-21605", "clients without a login fill the memory", []string{"6.2.18", "7.2.8", "7.4.3"}},
	{"CVE-2025-32023", "HyperLogLog: a login runs code of its own", []string{"6.2.19", "7.2.10", "7.4.5", "8.0.3"}},
	{"CVE-2025-49844", "Lua (RediShell): a script runs code of its own", []string{"6.2.20", "7.2.11", "7.4.6", "8.0.4", "8.2.2"}},
	{"CVE-2025-67733", "Lua: a script forges answers to others", nil},
	{"CVE-2026-25243", "RESTORE: a login runs code of its own", nil},
	{"CVE-2026-66373", "RESTORE or Lua: a login runs code of its own", nil},
	{"CVE-2026-81934", "TLS: clients without a login run code", nil},
}

// judgeMemory looks at what Redis does when memory is short.
func judgeMemory(f *Facts) []Finding {
	const check = "memory"
	policy, limit := f.Server.Info["maxmemory_policy"], number(f.Server.Info["maxmemory"])
	used := number(f.Server.Info["used_memory"])
	const nearly = 0.8
	switch {
	case policy == "":
		return unknown(check, "memory policy", "INFO")
	case policy != "noeviction":
		return fail(check, "maxmemory-policy is "+policy+": Redis deletes tasks when memory is short",
			"CONFIG SET maxmemory-policy noeviction, also in redis.conf")
	case limit == 0:
		return warn(check, "maxmemory is not set: the kernel ends Redis when the host has no memory left",
			"set maxmemory to about 70 % of what the host can spare")
	case used > nearly*limit:
		return warn(check, fmt.Sprintf("%.0f of %.0f MiB are used; at the limit Redis refuses every change", used/mib, limit/mib),
			"raise maxmemory, or archive and delete what is not needed any more")
	default:
		return append(ok(check, fmt.Sprintf("noeviction, %.0f of %.0f MiB used", used/mib, limit/mib)), judgePacking(f)...)
	}
}

// packedValue is the longest value in a packed hash, as configs/redis.conf has it.
const packedValue = 1024

// judgePacking looks whether Redis keeps tasks packed, which saves memory and costs nothing. It has nothing to say where
// Redis does not tell: an access list forbids that, which other findings say, or it is older than 7.0.
func judgePacking(f *Facts) []Finding {
	const setting = "hash-max-listpack-value"
	if text := f.Server.Settings[setting]; text != "" && number(text) < packedValue {
		return warn("memory", setting+" is "+text+": tasks take about twice the memory they need",
			fmt.Sprintf("CONFIG SET %s %d, also in redis.conf (see configs/redis.conf)", setting, packedValue))
	}
	return nil
}

const mib = 1 << 20

// number reads a number of INFO, or returns 0.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

const seeLog = "see the log of Redis; most often its disk is full"

// judgePersistence looks at what is kept on disk, and whether that works.
func judgePersistence(f *Facts) []Finding {
	const check = "persistence"
	info := f.Server.Info
	aof, known := info["aof_enabled"]
	if !known {
		return unknown(check, "persistence", "INFO")
	}
	var found []Finding
	if status := info["aof_last_write_status"]; status != "" && status != "ok" {
		found = append(found, fail(check, "the last write to the append-only file failed", seeLog)...)
	}
	if status := info["rdb_last_bgsave_status"]; status != "" && status != "ok" {
		found = append(found, fail(check, "the last snapshot failed; Redis may refuse every change", seeLog)...)
	}
	if status := info["aof_last_bgrewrite_status"]; status != "" && status != "ok" {
		found = append(found, warn(check, "the last rewrite of the append-only file failed: it grows", seeLog)...)
	}
	fsync := f.Server.Settings["appendfsync"]
	switch {
	case aof != "1" && f.Server.Settings != nil && f.Server.Settings["save"] == "":
		found = append(found, fail(check, "neither append-only file nor snapshots: a restart of Redis loses every task", "appendonly yes")...)
	case aof != "1":
		found = append(found, warn(check, "no append-only file: a crash of Redis loses the tasks of the last minutes", "appendonly yes")...)
	case fsync == "no":
		found = append(found, warn(check, "appendfsync no: a crash of the host loses what the kernel has not written yet",
			"appendfsync everysec, or always")...)
	case fsync == "":
		found = append(append(found, ok(check, "append-only file")...), unknown(check, "appendfsync", "CONFIG GET")...)
	default:
		found = append(found, ok(check, "append-only file, appendfsync "+fsync)...)
	}
	return found
}

// judgeDurability says whether Redis keeps what [redis] durability promises, which
// every program checks at its start.
func judgeDurability(f *Facts) []Finding {
	const check = "durability"
	if f.Refused != nil {
		return refusal(check, f.Refused)
	}
	var found []Finding
	for _, w := range f.CheckWarnings {
		if strings.Contains(w, "not checked") {
			found = append(found, skip(check, w)...)
		} else {
			found = append(found, warn(check, "at its start a program warns: "+w, "see persistence and replication here, and docs/OPERATIONS.md")...)
		}
	}
	switch {
	case found != nil:
		return found
	case f.Server.Info["aof_enabled"] == "":
		return unknown(check, "durability="+f.Redis.Durability, "INFO")
	default:
		return ok(check, "durability="+f.Redis.Durability+" fits the server")
	}
}

// refusal is the finding of what no program starts with. The error names its remedy.
func refusal(check string, err error) []Finding {
	text, remedy := err.Error(), "see [redis] durability in docs/CONFIGURATION.md"
	if setup, is := errors.AsType[*conn.SetupError](err); is {
		remedy = setup.Remedy
		text = strings.TrimSuffix(text, "; "+remedy)
	}
	return fail(check, "programs refuse this Redis: "+text, remedy)
}

// judgeReplication looks at replicas, of which a single Redis needs none.
func judgeReplication(f *Facts) []Finding {
	const check = "replication"
	info := f.Server.Info
	switch {
	case info["role"] == "":
		return unknown(check, "replication", "INFO")
	case info["role"] == "slave":
		return fail(check, "this is a replica, which takes no changes", "name the master in [redis], or use sentinel_master")
	case info["connected_slaves"] == "0" && (f.Redis.Sentinel() || f.Redis.Cluster()):
		return fail(check, "master without replicas: there is nobody to take over", "start the replicas")
	case strings.Contains(slaves(info), "state=wait_bgsave"), strings.Contains(slaves(info), "state=send_bulk"):
		return warn(check, "a replica is still getting its first copy: a failover now would lose everything", "wait until it is online")
	case info["connected_slaves"] != "0" && f.Server.Settings["min-replicas-to-write"] == "0":
		return warn(check, "master with "+info["connected_slaves"]+" replicas, takes changes also without them: a network fault loses these",
			"min-replicas-to-write 1 and min-replicas-max-lag 2")
	case info["connected_slaves"] != "0" && f.Server.Settings == nil:
		return append(ok(check, "master with "+info["connected_slaves"]+" replicas"), unknown(check, "min-replicas-to-write", "CONFIG GET")...)
	default:
		return ok(check, "master with "+info["connected_slaves"]+" replicas")
	}
}

// slaves are the lines of the replicas.
func slaves(info map[string]string) string {
	var lines strings.Builder
	for name, value := range info {
		if strings.HasPrefix(name, "slave") {
			lines.WriteString(value + "\n")
		}
	}
	return lines.String()
}

// Bounds of a PING. A claim is one round trip.
const (
	medianWarn = 20 * time.Millisecond
	worstWarn  = 250 * time.Millisecond
	// manySlow is how many slow calls are more than a trifle.
	manySlow = 32
)

func judgeLatency(f *Facts) []Finding {
	const check = "latency"
	if len(f.Server.Pings) == 0 {
		return unknown(check, "latency", "PING")
	}
	sorted := slices.Sorted(slices.Values(f.Server.Pings))
	median, worst := sorted[len(sorted)/2], sorted[len(sorted)-1]
	text := fmt.Sprintf("PING takes %v (median of %d), at most %v", median.Round(time.Microsecond), len(sorted), worst.Round(time.Microsecond))
	found := ok(check, text)
	if median > medianWarn || worst > worstWarn {
		found = warn(check, text, "put Redis nearer; look there for swapping, huge pages (redis-cli --intrinsic-latency 10) and a busy host")
	}
	switch {
	case f.Server.SlowCalls < 0:
		found = append(found, unknown(check, "slow log", "SLOWLOG LEN")...)
	case f.Server.SlowCalls >= manySlow:
		found = append(found, warn(check, fmt.Sprintf("%d calls in the slow log", f.Server.SlowCalls),
			"redis-cli SLOWLOG GET says which; KEYS and the like of other programs hold everybody up")...)
	}
	return found
}

// judgeLogin looks at the user of this connection.
func judgeLogin(f *Facts) []Finding {
	const check = "login"
	account := f.Server.Login
	remedy := "give each program a user of its own: tdf-manager acl server, worker, manager and viewer print them"
	switch {
	case account == nil && f.Server.User == "":
		return unknown(check, "user", "ACL WHOAMI")
	case account == nil:
		return ok(check, "user "+f.Server.User+", no administrator")
	case account.NoPassword && !local(&f.Redis):
		return fail(check, "user "+f.Server.User+" needs no password, on a network", "set a password (requirepass); then "+remedy)
	case strings.Contains(" "+account.Commands+" ", " +@all "):
		return warn(check, "user "+f.Server.User+" is an administrator of Redis, who may read and delete every namespace", remedy)
	default:
		return warn(check, "user "+f.Server.User+" may read the list of users", remedy)
	}
}
