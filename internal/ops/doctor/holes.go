package doctor

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
