package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const now = statemachine.Time(1_800_000_000) * statemachine.Time(statemachine.Second)

// well is a namespace with nothing wrong.
func well() *Facts {
	return &Facts{
		Redis: config.Redis{Host: "localhost", Port: 6379, Durability: config.DurabilityFast},
		Server: upkeep.Facts{
			Info: map[string]string{
				"redis_version": "8.4.0", "maxmemory_policy": "noeviction", "maxmemory": "1000000000", "used_memory": "1000000",
				"aof_enabled": "1", "aof_last_write_status": "ok", "rdb_last_bgsave_status": "ok", "aof_last_bgrewrite_status": "ok",
				"role": "master", "connected_slaves": "0",
			},
			Settings: map[string]string{"appendfsync": "everysec", "save": "", "min-replicas-to-write": "0", "hash-max-listpack-value": "1024"},
			Pings:    []time.Duration{time.Millisecond}, Skew: time.Millisecond, Margin: time.Millisecond, User: "tdf-viewer-x",
		},
		Now: now, ServerSeen: now.Add(-statemachine.Second), Quarantine: "warn", Sizes: upkeep.Sizes{Epoch: 1},
		Workers: []task.Worker{worker("a", "v1", "pidns+cgroup"), worker("b", "v1", "cgroup"), worker("c", "v1", "pidns (with the host's /proc)")},
		Config:  &config.Server{},
		Places:  []Place{{Setting: "temp_dir", Path: "/tmp", Free: 5 << 30}},
	}
}

func worker(name, version, containment string) task.Worker {
	return task.Worker{
		Registration: task.Registration{Name: name, Version: version, Containment: containment}, State: task.WorkerReady,
	}
}

func week() []config.Retention {
	return []config.Retention{{Outcome: statemachine.Succeeded, Age: 7 * 24 * time.Hour, Most: -1}}
}

// Where nothing is wrong, each subject says so, and none has a remedy.
func TestWell(t *testing.T) {
	t.Parallel()
	findings := Examine(well())
	for _, f := range findings {
		if f.Severity != OK || f.Remedy != "" || f.Found == "" {
			t.Errorf("%+v", f)
		}
	}
	if len(findings) < len(subjects) || Sick(findings) {
		t.Errorf("%d findings of %d subjects, sick %v", len(findings), len(subjects), Sick(findings))
	}
}

// Each thing that can be wrong is found by its subject, and by no other, with a remedy.
func TestIll(t *testing.T) {
	t.Parallel()
	info := func(name, value string) func(*Facts) { return func(f *Facts) { f.Server.Info[name] = value } }
	setting := func(name, value string) func(*Facts) { return func(f *Facts) { f.Server.Settings[name] = value } }
	remote := func(f *Facts) { f.Redis.Host, f.Redis.TLS = "redis.example", true }
	for name, c := range map[string]struct {
		change   func(*Facts)
		check    string
		severity Severity
		says     string
	}{
		"old":             {info("redis_version", "7.0.15"), "version", Warn, "CVE-2025-49844"},
		"one behind":      {info("redis_version", "7.4.5"), "version", Warn, "CVE-2025-49844"},
		"no version":      {info("redis_version", ""), "version", Warn, "does not tell"},
		"evicts":          {info("maxmemory_policy", "allkeys-lru"), "memory", Fail, "allkeys-lru"},
		"no limit":        {info("maxmemory", "0"), "memory", Warn, "not set"},
		"nearly full":     {info("used_memory", "900000000"), "memory", Warn, "858 of 954 MiB"},
		"unpacked":        {setting("hash-max-listpack-value", "64"), "memory", Warn, "hash-max-listpack-value is 64"},
		"no aof":          {func(f *Facts) { info("aof_enabled", "0")(f); setting("save", "60 1")(f) }, "persistence", Warn, "no append-only file"},
		"nothing kept":    {info("aof_enabled", "0"), "persistence", Fail, "neither"},
		"no fsync":        {setting("appendfsync", "no"), "persistence", Warn, "appendfsync no"},
		"aof fails":       {info("aof_last_write_status", "err"), "persistence", Fail, "last write"},
		"rdb fails":       {info("rdb_last_bgsave_status", "err"), "persistence", Fail, "snapshot"},
		"rewrite fails":   {info("aof_last_bgrewrite_status", "err"), "persistence", Warn, "rewrite"},
		"refused":         {func(f *Facts) { f.Refused = errors.New("appendfsync") }, "durability", Fail, "appendfsync"},
		"unfit":           {func(f *Facts) { f.Refused = unfit() }, "durability", Fail, "appendfsync = no: it is not"},
		"warned":          {func(f *Facts) { f.CheckWarnings = []string{"lag"} }, "durability", Warn, "lag"},
		"replica":         {info("role", "slave"), "replication", Fail, "replica"},
		"alone":           {func(f *Facts) { f.Redis.SentinelMaster, f.Redis.SentinelAddrs = "m", []string{"127.0.0.1:1"} }, "replication", Fail, "without replicas"},
		"first copy":      {func(f *Facts) { info("connected_slaves", "1")(f); info("slave0", "ip=x,state=wait_bgsave")(f) }, "replication", Warn, "first copy"},
		"takes all":       {info("connected_slaves", "1"), "replication", Warn, "also without them"},
		"clock a bit off": {func(f *Facts) { f.Server.Skew = -2 * time.Second }, "clock", Warn, "-2.000 s"},
		"clock far off":   {func(f *Facts) { f.Server.Skew = time.Hour }, "clock", Fail, "+3600.000 s"},
		"far":             {func(f *Facts) { f.Server.Pings = []time.Duration{time.Second} }, "latency", Warn, "1s"},
		"slow calls":      {func(f *Facts) { f.Server.SlowCalls = 99 }, "latency", Warn, "99 calls"},
		"administrator":   {func(f *Facts) { f.Server.Login = &upkeep.Login{Commands: "+@all"} }, "login", Warn, "administrator"},
		"sees users":      {func(f *Facts) { f.Server.Login = &upkeep.Login{Commands: "-@all +acl"} }, "login", Warn, "list of users"},
		"open to all":     {func(f *Facts) { remote(f); f.Server.Login = &upkeep.Login{NoPassword: true, Commands: "+@all"} }, "login", Fail, "no password"},
		"in the clear":    {func(f *Facts) { f.Redis.Host = "10.0.0.1" }, "network", Warn, "no TLS"},
		"one node away": {func(f *Facts) {
			f.Redis.ClusterAddrs = []string{"127.0.0.1:1", "10.0.0.1:1"}
			info("connected_slaves", "1")(f)
			setting("min-replicas-to-write", "1")(f)
		}, "network", Warn, "no TLS"},
		"exposed":          {func(f *Facts) { f.Exposed = []string{"/etc/x"} }, "secrets", Fail, "/etc/x"},
		"never a server":   {func(f *Facts) { f.ServerSeen = 0 }, "server", Fail, "no server has ever"},
		"no server":        {func(f *Facts) { f.ServerSeen = now.Add(-100 * statemachine.Second) }, "server", Fail, "for 1m40s"},
		"no worker":        {func(f *Facts) { f.Workers = nil }, "workers", Warn, "no worker"},
		"lost worker":      {func(f *Facts) { f.Workers = f.Workers[:1]; f.Workers[0].State = task.WorkerLost }, "workers", Warn, "no worker"},
		"weak":             {func(f *Facts) { f.Workers[0].Containment = "group" }, "workers", Warn, "worker a"},
		"weak with limits": {func(f *Facts) { f.Workers[0].Containment = "group+cgroup" }, "workers", Warn, "worker a"},
		"says nothing":     {func(f *Facts) { f.Workers[0].Containment = "" }, "workers", Warn, "does not say"},
		"stuck":            {func(f *Facts) { f.Workers[1].Stuck = 2 }, "workers", Warn, "worker b: 2 slots"},
		"skewed":           {func(f *Facts) { f.Workers[1].Version = "v2" }, "versions", Warn, "v1: 2, v2: 1"},
		"aside": {func(f *Facts) {
			f.Nodes = []task.Node{task.ParseNode("bad", nil).Idle(), task.ParseNode("good", nil).Idle()}
			f.Nodes[0].Quarantined = task.Moment(now)
		}, "nodes", Warn, "in quarantine: bad"},
		"lost": {func(f *Facts) {
			f.Gaps = []conn.Epoch{{Number: 2, At: now, Lost: 7, FromID: 5, ToID: 9, SureID: 5}}
			f.Sizes.Epoch = 2
		}, "history", Warn, "last seen at 2027-01-15 08:00:00 UTC: at least 7 changes; ids 6 to 9 were left out"},
		"behind":      {func(f *Facts) { f.Sizes.Behind = true }, "history", Fail, "gone back in time"},
		"unconfirmed": {func(f *Facts) { f.Sizes.Unconfirmed = true }, "history", Fail, "no task can be opened"},
		"twice": {func(f *Facts) {
			f.Gaps = []conn.Epoch{{Number: 1, Confirmed: true, FromID: 5, ToID: 9, SureID: 3}}
		}, "history", Fail, "ids 4 to 5 may have been given out twice"},
		"damaged":        {func(f *Facts) { f.Sizes.DeadLetters = 3 }, "tasks", Warn, "3 damaged"},
		"hoarding":       {func(f *Facts) { f.Sizes.Archived = manyArchived }, "tasks", Warn, "1000000 archived"},
		"archive fails":  {func(f *Facts) { f.Sizes.ArchiveError = "server a: no space left" }, "retention", Fail, "server a: no space left"},
		"nobody retires": {func(f *Facts) { f.Config.ArchiveRetention = week() }, "retention", Warn, "no server"},
		"retires no more": {func(f *Facts) {
			f.Config.ArchiveRetention = week()
			f.Sizes.PurgeLease = now.Add(-61 * statemachine.Second)
		}, "retention", Warn, "no server"},
		"others retire": {func(f *Facts) { f.Sizes.PurgeLease = now.Add(5 * statemachine.Second) }, "retention", Warn, "not in this configuration"},
		"retires late": {func(f *Facts) {
			f.Config.ArchiveRetention, f.Sizes.PurgeLease, f.Overstayed = week(), now.Add(5*statemachine.Second), 7
		}, "retention", Warn, "7 archived tasks"},
		"little room": {func(f *Facts) { f.Places[0].Free = 500 << 20 }, "disk", Warn, "500 MiB"},
		"no room":     {func(f *Facts) { f.Places[0].Free = 1 }, "disk", Fail, "0 MiB"},
		"no disk":     {func(f *Facts) { f.Places[0].Err = errors.New("gone") }, "disk", Warn, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := well()
			c.change(f)
			findings := Examine(f)
			var ill []Finding
			for _, found := range findings {
				if found.Severity != OK {
					ill = append(ill, found)
				}
			}
			if len(ill) != 1 || ill[0].Check != c.check || ill[0].Severity != c.severity || !strings.Contains(ill[0].Found, c.says) || ill[0].Remedy == "" {
				t.Errorf("found %+v, want %s of %s: %s", ill, c.severity, c.check, c.says)
			}
			if Sick(findings) != (c.severity == Fail) {
				t.Error("wrong verdict")
			}
		})
	}
}

// What may not be asked is named as not checked, and is no failure.
func TestUnknown(t *testing.T) {
	t.Parallel()
	f := well()
	f.Server = upkeep.Facts{SlowCalls: -1, Pings: f.Server.Pings}
	f.Places[0].Free = disk.Unknown
	findings := Examine(f)
	if Sick(findings) {
		t.Errorf("sick: %+v", findings)
	}
	for _, check := range []string{"memory", "persistence", "durability", "replication", "login", "latency", "disk"} {
		if !skips(findings, check, "not checked") {
			t.Errorf("%s does not say that it was not checked: %+v", check, findings)
		}
	}
	f = well()
	f.Server.Settings = nil
	f.Server.Info["connected_slaves"] = "2"
	f.CheckWarnings = []string{"CONFIG GET is not allowed, so appendfsync was not checked"}
	findings = Examine(f)
	for check, says := range map[string]string{"persistence": "appendfsync", "replication": "min-replicas", "durability": "appendfsync"} {
		if !skips(findings, check, says) {
			t.Errorf("%s does not say that %s was not checked: %+v", check, says, findings)
		}
	}
}

func skips(findings []Finding, check, says string) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Check == check && f.Severity == Skip && strings.Contains(f.Found, says)
	})
}

// What a program says when it refuses a Redis is told with its remedy apart.
func TestRefusal(t *testing.T) {
	t.Parallel()
	f := well()
	f.Refused = fmt.Errorf("check: %w", unfit())
	var r report
	judgeDurability(f, &r)
	found := r.findings
	if len(found) != 1 || found[0].Remedy != "set it to always" || strings.Contains(found[0].Found, "set it to always") {
		t.Errorf("%+v", found)
	}
}

func unfit() error {
	return &conn.SetupError{Setting: "appendfsync", Value: "no", Remedy: "set it to always", Err: errors.New("it is not fit")}
}

// A version is mended from the fix of its own line on, and if it is newer than all of them.
func TestMended(t *testing.T) {
	t.Parallel()
	fixed := []string{"6.2.20", "7.2.11", "8.2.2"}
	for version, want := range map[string]bool{
		"6.2.19": false, "6.2.20": true, "6.2.100": true, "7.0.15": false, "7.2.10": false, "7.2.11": true, "7.4.0": false,
		"8.2.1": false, "8.2.2": true, "8.4.0": true, "9.0": true, "": false, "x.y.z": false,
	} {
		if got := mended(version, fixed); got != want {
			t.Errorf("%q: mended %v", version, got)
		}
	}
}
