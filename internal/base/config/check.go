package config

import (
	"errors"
	"os"
	"strings"
)

// check refuses settings that are fine alone but not together.
func (l *loader) check() {
	l.checkEmbedded()
	l.checkTopology()
	l.checkDurability()
	l.checkTLS()
	l.checkTaskDefaults()
	l.checkServer()
	l.checkManager()
	l.checkWorker()
	l.checkFiles()
}

func (l *loader) checkEmbedded() {
	redis := &l.file.Redis
	switch {
	case redis.Port == 0 && !redis.Embedded():
		l.reportRedis("port", "only an embedded Redis chooses its port itself", "write the port, normally 6379")
	case !redis.Embedded():
	case l.file.Kind != ForServer:
		l.reportRedis("host", "only the server can hold an embedded Redis",
			"write the address that the server logs at its start, for example host=127.0.0.1")
	case redis.TLS || redis.Sentinel() || redis.Cluster():
		l.reportRedis("host", "an embedded Redis has no tls, sentinel or cluster", "remove those keys, or name a Redis server")
	case redis.Password != "" && redis.Username != "":
		l.reportRedis("username", "an embedded Redis has no users", "remove the username; a password is possible")
	}
}

func (l *loader) checkTopology() {
	redis := &l.file.Redis
	braced := strings.HasPrefix(l.file.TDF.Namespace, "{")
	switch {
	case redis.Sentinel() && len(redis.SentinelAddrs) == 0:
		l.reportRedis("sentinel_addrs", "missing, although sentinel_master is set", "list the sentinels as host:port")
	case !redis.Sentinel() && len(redis.SentinelAddrs) > 0:
		l.reportRedis("sentinel_master", "missing, although sentinel_addrs is set", "write the name of the master, often mymaster")
	case !redis.Sentinel() && redis.SentinelPassword != "":
		l.reportRedis("sentinel_password", "set without sentinel_master", "remove it, or configure the sentinels")
	case redis.Sentinel() && redis.Cluster():
		l.reportRedis("cluster_addrs", "given together with sentinel_master", "remove one of the two")
	case redis.Cluster() && redis.DB != 0:
		l.reportRedis("db", "a Redis Cluster has only database 0", "remove the line")
	case redis.Cluster() && !braced:
		l.report(l.errorAt("tdf", "namespace", "not in braces, which a Redis Cluster needs to keep its keys together",
			"write namespace={"+l.file.TDF.Namespace+"}"))
	}
}

func (l *loader) checkDurability() {
	redis := &l.file.Redis
	switch {
	case redis.Durability == DurabilityFast:
	case redis.Embedded():
		l.reportRedis("durability", "an embedded Redis keeps nothing", "write durability=fast, or name a Redis server")
	case redis.Durability == DurabilityHA && redis.Cluster():
		l.reportRedis("durability", "not possible with a Redis Cluster, of which the sentinels are no part",
			"write durability=safe, or use sentinel_master in place of cluster_addrs")
	case redis.Durability == DurabilityHA && redis.ReplicationTimeout >= redis.ReadTimeout:
		l.reportRedis("replication_timeout", "not shorter than read_timeout ("+secondsText(redis.ReadTimeout)+"), which would end the wait",
			"lower it, or raise read_timeout")
	}
}

func (l *loader) checkTLS() {
	redis := &l.file.Redis
	switch {
	case redis.CertFile != "" && redis.KeyFile == "":
		l.reportRedis("key_file", "missing, although cert_file is set", "name the file of the certificate's key")
	case redis.CertFile == "" && redis.KeyFile != "":
		l.reportRedis("cert_file", "missing, although key_file is set", "name the file of the certificate")
	}
	if redis.TLS {
		return
	}
	for _, key := range []string{"ca_file", "cert_file", "key_file", "server_name"} {
		if s := l.file.settings["redis."+key]; none(s.text) != "" {
			l.reportRedis(key, "has no effect without tls", "write tls=true, or remove the line")
		}
	}
}

func (l *loader) checkTaskDefaults() {
	if e, ok := errors.AsType[*Error](l.file.TaskDefaults.Check()); ok {
		l.report(l.errorAt(e.Section, e.Key, e.Problem, e.Remedy))
	}
}

func (l *loader) checkServer() {
	if s := &l.file.Server; s.ArchiveDir != "" && len(s.ArchiveRetention) == 0 {
		l.report(l.errorAt("server", "archive_dir", "without archive_retention nothing is ever written there",
			"write archive_retention, for example 7d, or remove archive_dir"))
	}
}

func (l *loader) checkManager() {
	m := &l.file.Manager
	if m.HandlerBackoff > m.HandlerBackoffMax {
		problem := "longer than handler_backoff_max (" + secondsText(m.HandlerBackoffMax) + ")"
		l.report(l.errorAt("manager", "handler_backoff", problem, "raise handler_backoff_max, or lower handler_backoff"))
	}
}

// checkFiles opens the files that this program will need, so that a wrong path
// shows at the start and not with the first connection or fetch.
func (l *loader) checkFiles() {
	redis := &l.file.Redis
	l.checkReadable("redis", "ca_file", redis.CAFile)
	l.checkReadable("redis", "cert_file", redis.CertFile)
	l.checkReadable("redis", "key_file", redis.KeyFile)
	if l.file.Kind == ForWorker {
		l.checkReadable("worker", "netrc_file", l.file.Worker.NetrcFile)
		l.checkReadable("worker", "ca_file", l.file.Worker.CAFile)
	}
}

func (l *loader) checkReadable(section, key, path string) {
	if path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		l.reportUnreadable(section, key, err)
		return
	}
	f.Close() //nolint:errcheck // only opened
}

func (l *loader) reportRedis(key, problem, remedy string) {
	l.report(l.errorAt("redis", key, problem, remedy))
}

// errorAt makes an error about a key, with its place and value.
func (l *loader) errorAt(sectionName, keyName, problem, remedy string) *Error {
	k, _ := l.schema.section(sectionName).key(keyName)
	s := l.file.settings[sectionName+"."+keyName]
	e := l.fault(sectionName, k, s, &fault{problem, remedy})
	if e.File == "" {
		e.File = l.file.Path
	}
	return e
}
