package doctor

import (
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
func judgeVersion(f *Facts, r *report) {
	version := f.Server.Info["redis_version"]
	var open []string
	for _, h := range holes {
		if !mended(version, h.fixed) {
			open = append(open, h.id+" ("+h.what+")")
		}
	}
	switch {
	case version == "":
		r.warn("Redis does not tell its version", "allow INFO to this user, or look at the version by hand")
	case len(open) == 0:
		r.ok("Redis " + version + "; see the security notices of its maker for what came later")
	default:
		r.warn(fmt.Sprintf("Redis %s: by its version open to %s", version, strings.Join(open, ", ")),
			"upgrade Redis. A distribution's package may have the fixes under an older version: its changelog names the ids, and also "+unversioned)
	}
}

// mended reports whether a version has a fix that came with these versions, the newest of which is the last.
func mended(version string, fixed []string) bool {
	mine := numbers(version)
	for _, f := range fixed {
		theirs := numbers(f)
		if mine[0] == theirs[0] && mine[1] == theirs[1] {
			return mine[2] >= theirs[2]
		}
	}
	newest := numbers(fixed[len(fixed)-1])
	return slices.Compare(mine[:], newest[:]) > 0
}

// numbers are the first three parts of a version; a part that is not a number counts as 0.
func numbers(version string) (n [3]int) {
	for i, part := range strings.SplitN(version, ".", 3) {
		n[i], _ = strconv.Atoi(part)
	}
	return n
}

// holes are weaknesses that matter where somebody may log in or connect. Versions are those of the
// advisories of the Redis project (github.com/redis/redis/security/advisories): the first without the weakness,
// one a release line, the newest last. A line that is not named has no fix, unless it is newer than all of them.
var holes = []struct {
	id, what string
	fixed    []string
}{
	{"CVE-2024-31449", "Lua: a script runs code of its own", []string{"6.2.16", "7.2.6", "7.4.1"}},
	{"CVE-2024-46981", "Lua: a script runs code of its own", []string{"6.2.17", "7.2.7", "7.4.2"}},
	{"CVE-2025-21605", "clients without a login fill the memory", []string{"6.2.18", "7.2.8", "7.4.3"}},
	{"CVE-2025-32023", "HyperLogLog: a login runs code of its own", []string{"6.2.19", "7.2.10", "7.4.5", "8.0.3"}},
	{"CVE-2025-49844", "Lua (RediShell): a script runs code of its own", []string{"6.2.20", "7.2.11", "7.4.6", "8.0.4", "8.2.2"}},
}

// unversioned are the ids that only the changelog of Debian's package has, which says there which package has the fix: a script
// forges answers to others; by RESTORE, or Lua, a login runs code of its own; by TLS, clients without a login run code.
const unversioned = "CVE-2025-67733, CVE-2026-25243, CVE-2026-66373, CVE-2026-81934"

// judgeMemory looks at what Redis does when memory is short.
func judgeMemory(f *Facts, r *report) {
	policy, limit := f.Server.Info["maxmemory_policy"], number(f.Server.Info["maxmemory"])
	used := number(f.Server.Info["used_memory"])
	const nearly = 0.8
	switch {
	case policy == "":
		r.unknown("memory policy", "INFO")
	case policy != "noeviction":
		r.fail("maxmemory-policy is "+policy+": Redis deletes tasks when memory is short",
			"CONFIG SET maxmemory-policy noeviction, also in redis.conf")
	case limit == 0:
		r.warn("maxmemory is not set: the kernel ends Redis when the host has no memory left",
			"set maxmemory to about 70 % of what the host can spare")
	case used > nearly*limit:
		r.warn(fmt.Sprintf("%.0f of %.0f MiB are used; at the limit Redis refuses every change", used/mib, limit/mib),
			"raise maxmemory, or archive and delete what is not needed any more")
	default:
		r.ok(fmt.Sprintf("noeviction, %.0f of %.0f MiB used", used/mib, limit/mib))
		judgePacking(f, r)
	}
}

// packedValue is the longest value in a packed hash, as configs/redis.conf has it.
const packedValue = 1024

// judgePacking looks whether Redis keeps tasks packed, which saves memory and costs nothing. It has nothing to say where
// Redis does not tell: an access list forbids that, which other findings say, or it is older than 7.0.
func judgePacking(f *Facts, r *report) {
	const setting = "hash-max-listpack-value"
	if text := f.Server.Settings[setting]; text != "" && number(text) < packedValue {
		r.warn(setting+" is "+text+": tasks take about twice the memory they need",
			fmt.Sprintf("CONFIG SET %s %d, also in redis.conf (see configs/redis.conf)", setting, packedValue))
	}
}

const mib = 1 << 20

// number reads a number of INFO, or returns 0.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

const seeLog = "see the log of Redis; most often its disk is full"

// judgePersistence looks at what is kept on disk, and whether that works.
func judgePersistence(f *Facts, r *report) {
	info := f.Server.Info
	aof, known := info["aof_enabled"]
	if !known {
		r.unknown("persistence", "INFO")
		return
	}
	failed := func(what string) bool { return info[what] != "" && info[what] != "ok" }
	if failed("aof_last_write_status") {
		r.fail("the last write to the append-only file failed", seeLog)
	}
	if failed("rdb_last_bgsave_status") {
		r.fail("the last snapshot failed; Redis may refuse every change", seeLog)
	}
	if failed("aof_last_bgrewrite_status") {
		r.warn("the last rewrite of the append-only file failed: it grows", seeLog)
	}
	fsync := f.Server.Settings["appendfsync"]
	switch {
	case aof != "1" && f.Server.Settings != nil && f.Server.Settings["save"] == "":
		r.fail("neither append-only file nor snapshots: a restart of Redis loses every task", "appendonly yes")
	case aof != "1":
		r.warn("no append-only file: a crash of Redis loses the tasks of the last minutes", "appendonly yes")
	case fsync == "no":
		r.warn("appendfsync no: a crash of the host loses what the kernel has not written yet",
			"appendfsync everysec, or always")
	case fsync == "":
		r.ok("append-only file")
		r.unknown("appendfsync", "CONFIG GET")
	default:
		r.ok("append-only file, appendfsync " + fsync)
	}
}

// judgeDurability says whether Redis keeps what [redis] durability promises, which
// every program checks at its start.
func judgeDurability(f *Facts, r *report) {
	if f.Refused != nil {
		refusal(r, f.Refused)
		return
	}
	for _, w := range f.CheckWarnings {
		if strings.Contains(w, "not checked") {
			r.skip(w)
		} else {
			r.warn("at its start a program warns: "+w, "see persistence and replication here, and docs/OPERATIONS.md")
		}
	}
	switch {
	case r.findings != nil:
	case f.Server.Info["aof_enabled"] == "":
		r.unknown("durability="+f.Redis.Durability, "INFO")
	default:
		r.ok("durability=" + f.Redis.Durability + " fits the server")
	}
}

// refusal is the finding of what no program starts with. The error names its remedy.
func refusal(r *report, err error) {
	text, remedy := err.Error(), "see [redis] durability in docs/CONFIGURATION.md"
	if setup, is := errors.AsType[*conn.SetupError](err); is {
		remedy = setup.Remedy
		text = strings.TrimSuffix(text, "; "+remedy)
	}
	r.fail("programs refuse this Redis: "+text, remedy)
}

// judgeReplication looks at replicas, of which a single Redis needs none.
func judgeReplication(f *Facts, r *report) {
	info := f.Server.Info
	switch {
	case info["role"] == "":
		r.unknown("replication", "INFO")
	case info["role"] == "slave":
		r.fail("this is a replica, which takes no changes", "name the master in [redis], or use sentinel_master")
	case info["connected_slaves"] == "0" && (f.Redis.Sentinel() || f.Redis.Cluster()):
		r.fail("master without replicas: no replica can take over", "start the replicas")
	case copying(info):
		r.warn("a replica is still getting its first copy: a failover now would lose everything", "wait until it is online")
	case info["connected_slaves"] != "0" && f.Server.Settings["min-replicas-to-write"] == "0":
		r.warn("master with "+info["connected_slaves"]+" replicas, takes changes also without them: a network fault loses these",
			"min-replicas-to-write 1 and min-replicas-max-lag 2")
	case info["connected_slaves"] != "0" && f.Server.Settings == nil:
		r.ok("master with " + info["connected_slaves"] + " replicas")
		r.unknown("min-replicas-to-write", "CONFIG GET")
	default:
		r.ok("master with " + info["connected_slaves"] + " replicas")
	}
}

// copying reports whether a replica is still getting its first copy.
func copying(info map[string]string) bool {
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && (strings.Contains(value, "state=wait_bgsave") || strings.Contains(value, "state=send_bulk")) {
			return true
		}
	}
	return false
}

// Bounds of a PING. A claim is one round trip.
const (
	medianWarn = 20 * time.Millisecond
	worstWarn  = 250 * time.Millisecond
	// manySlow is how many slow calls are more than a trifle.
	manySlow = 32
)

func judgeLatency(f *Facts, r *report) {
	if len(f.Server.Pings) == 0 {
		r.unknown("latency", "PING")
		return
	}
	sorted := slices.Sorted(slices.Values(f.Server.Pings))
	median, worst := sorted[len(sorted)/2], sorted[len(sorted)-1]
	text := fmt.Sprintf("PING takes %v (median of %d), at most %v", median.Round(time.Microsecond), len(sorted), worst.Round(time.Microsecond))
	if median <= medianWarn && worst <= worstWarn {
		r.ok(text)
	} else {
		r.warn(text, "put Redis nearer; look there for swapping, huge pages (redis-cli --intrinsic-latency 10) and a busy host")
	}
	switch {
	case f.Server.SlowCalls < 0:
		r.unknown("slow log", "SLOWLOG LEN")
	case f.Server.SlowCalls >= manySlow:
		r.warn(fmt.Sprintf("%d calls in the slow log", f.Server.SlowCalls),
			"redis-cli SLOWLOG GET says which; KEYS and the like of other programs hold everybody up")
	}
}

// judgeLogin looks at the user of this connection.
func judgeLogin(f *Facts, r *report) {
	account := f.Server.Login
	remedy := "give each program a user of its own: tdf-manager acl server, worker, manager and viewer print them"
	switch {
	case account == nil && f.Server.User == "":
		r.unknown("user", "ACL WHOAMI")
	case account == nil:
		r.ok("user " + f.Server.User + ", no administrator")
	case account.NoPassword && !local(&f.Redis):
		r.fail("user "+f.Server.User+" needs no password, on a network", "set a password (requirepass); then "+remedy)
	case strings.Contains(" "+account.Commands+" ", " +@all "):
		r.warn("user "+f.Server.User+" is an administrator of Redis, who may read and delete every namespace", remedy)
	default:
		r.warn("user "+f.Server.User+" may read the list of users", remedy)
	}
}
