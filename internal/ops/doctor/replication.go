package doctor

import "strings"

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
