package config

import "strings"

// checkWorker refuses settings of [worker] that contradict others.
func (l *loader) checkWorker() {
	w, redis := &l.file.Worker, &l.file.Redis
	if w.OnRedisLoss == "finish" && (redis.Sentinel() || redis.Cluster()) {
		l.reportWorker("on_redis_loss",
			"with sentinel or cluster, an address where nobody listens does not prove that Redis is away: another may serve",
			"write on_redis_loss=stop")
	}
	if w.MemoryMax > 0 && w.MemoryMax < mib {
		l.reportWorker("memory_max", "less than any program needs", "write a size of at least 1MiB, for example 512MiB, or 0 for no limit")
	}
	seen := map[string]bool{}
	for _, limit := range w.Rlimits {
		name, _, _ := strings.Cut(limit, "=")
		if seen[name] {
			l.reportWorker("rlimits", "sets "+name+" twice", "remove one of the two")
		}
		seen[name] = true
	}
}

func (l *loader) reportWorker(key, problem, remedy string) {
	l.report(l.errorAt("worker", key, problem, remedy))
}
