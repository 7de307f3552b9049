package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// readSecrets settles where the password comes from and warns of files that
// others can read. Of password and password_file the one from the stronger
// source wins; both from one source is a contradiction.
func (l *loader) readSecrets() {
	redis := &l.file.Redis
	own, byFile := l.file.settings["redis.password"], l.file.settings["redis.password_file"]
	switch {
	case redis.PasswordFile == "":
	case own.level > byFile.level:
		redis.PasswordFile = ""
		l.forget("redis.password_file")
	case own.level == byFile.level && redis.Password != "":
		l.refuse("redis", "password_file", "given together with password", "remove one of the two")
	default:
		l.readPasswordFile(redis)
	}
	if own.level == fromFile && redis.Password != "" && redis.PasswordFile == "" {
		l.warnIfExposed(l.file.Path)
	}
	if s := l.file.settings["redis.sentinel_password"]; s.level == fromFile && l.file.Redis.SentinelPassword != "" {
		l.warnIfExposed(l.file.Path)
	}
	l.warnIfExposed(redis.KeyFile)
	if l.file.Kind == ForServer {
		l.warnIfExposed(l.file.HTTP.KeyFile)
	}
	if l.file.Kind == ForWorker {
		l.warnIfExposed(l.file.Worker.NetrcFile)
	}
}

func (l *loader) readPasswordFile(redis *Redis) {
	password, err := passwordIn(redis.PasswordFile)
	if wrong, ok := errors.AsType[*Error](err); ok {
		l.refuse("redis", "password_file", wrong.Problem, wrong.Remedy)
		return
	}
	if err != nil {
		l.reportUnreadable("redis", "password_file", err)
		return
	}
	redis.Password = password
	l.forget("redis.password")
	l.warnIfExposed(redis.PasswordFile)
}

// passwordIn reads a file that holds one line, a password. The error is an *Error
// if what it holds is wrong.
func passwordIn(path string) (string, error) {
	data, err := readLimited(path, maxValue)
	if err != nil {
		return "", err
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if password == "" {
		return "", invalid("the file is empty", "write the password into it, or remove the key")
	}
	if err := printable(password); err != nil {
		problem, _ := explain(err)
		return "", invalid("the password in the file is unusable: "+problem, "write it as one line of text")
	}
	return password, nil
}

// ReadPassword reads a file as password_file is read. The error never holds what
// is in it.
func ReadPassword(path string) (string, error) {
	password, err := passwordIn(path)
	if wrong, ok := errors.AsType[*Error](err); ok {
		wrong.Key, wrong.Value = "password file", path
		return "", wrong
	}
	if err != nil {
		return "", fmt.Errorf("password file %s: %w", path, err)
	}
	return password, nil
}

// Exposed reports whether every user of this host can read a file.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o004 != 0
}

// forget drops a setting that a stronger one has replaced, so that Print does
// not show both.
func (l *loader) forget(name string) { l.file.settings[name] = setting{} }

// warnIfExposed warns of a file with a secret that every user can read. It is
// no error: secrets mounted into containers usually have such modes.
func (l *loader) warnIfExposed(path string) {
	if Exposed(path) && !slices.Contains(l.file.exposed, path) {
		l.file.exposed = append(l.file.exposed, path)
	}
}

// reportUnreadable reports a file named by a key.
func (l *loader) reportUnreadable(section, key string, err error) {
	e := l.errorAt(section, key, "the file cannot be read: "+cause(err), "check the path and the permissions")
	e.Err = errors.Join(ErrInvalid, err)
	l.report(e)
}

// check refuses settings that are fine alone but not together.
func (l *loader) check() {
	l.checkEmbedded()
	l.checkTopology()
	l.checkDurability()
	l.checkTLS()
	l.checkHTTP()
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
		l.refuse("redis", "port", "only an embedded Redis chooses its port itself", "write the port, normally 6379")
	case !redis.Embedded():
	case l.file.Kind != ForServer:
		l.refuse("redis", "host", "only the server can hold an embedded Redis",
			"write the address that the server logs at its start, for example host=127.0.0.1")
	case redis.TLS || redis.Sentinel() || redis.Cluster():
		l.refuse("redis", "host", "an embedded Redis has no tls, sentinel or cluster", "remove those keys, or name a Redis server")
	case redis.Password != "" && redis.Username != "":
		l.refuse("redis", "username", "an embedded Redis has no users", "remove the username; a password is possible")
	}
}

func (l *loader) checkTopology() {
	redis := &l.file.Redis
	braced := strings.HasPrefix(l.file.TDF.Namespace, "{")
	switch {
	case redis.Sentinel() && len(redis.SentinelAddrs) == 0:
		l.refuse("redis", "sentinel_addrs", "missing, although sentinel_master is set", "list the sentinels as host:port")
	case !redis.Sentinel() && len(redis.SentinelAddrs) > 0:
		l.refuse("redis", "sentinel_master", "missing, although sentinel_addrs is set", "write the name of the master, often mymaster")
	case !redis.Sentinel() && redis.SentinelPassword != "":
		l.refuse("redis", "sentinel_password", "set without sentinel_master", "remove it, or configure the sentinels")
	case redis.Sentinel() && redis.Cluster():
		l.refuse("redis", "cluster_addrs", "given together with sentinel_master", "remove one of the two")
	case redis.Cluster() && redis.DB != 0:
		l.refuse("redis", "db", "a Redis Cluster has only database 0", "remove the line")
	case redis.Cluster() && !braced:
		l.refuse("tdf", "namespace", "not in braces, which a Redis Cluster needs to keep its keys together",
			"write namespace={"+l.file.TDF.Namespace+"}")
	}
}

func (l *loader) checkDurability() {
	redis := &l.file.Redis
	switch {
	case redis.Durability == DurabilityFast:
	case redis.Embedded():
		l.refuse("redis", "durability", "an embedded Redis keeps nothing", "write durability=fast, or name a Redis server")
	case redis.Durability == DurabilityHA && redis.Cluster():
		l.refuse("redis", "durability", "not possible with a Redis Cluster, of which the sentinels are no part",
			"write durability=safe, or use sentinel_master in place of cluster_addrs")
	case redis.Durability == DurabilityHA && redis.ReplicationTimeout >= redis.ReadTimeout:
		l.refuse("redis", "replication_timeout", "not shorter than read_timeout ("+secondsText(redis.ReadTimeout)+"), which would end the wait",
			"lower it, or raise read_timeout")
	}
}

func (l *loader) checkTLS() {
	redis := &l.file.Redis
	l.checkPair("redis", redis.CertFile, redis.KeyFile)
	if !redis.TLS {
		l.checkUnused("redis", "has no effect without tls", "write tls=true, or remove the line",
			"ca_file", "cert_file", "key_file", "server_name")
	}
}

func (l *loader) checkHTTP() {
	http := &l.file.HTTP
	l.checkPair("http", http.CertFile, http.KeyFile)
	if http.CertFile != "" && http.Insecure {
		l.refuse("http", "insecure", "has no effect with cert_file", "write insecure=false, or remove cert_file and key_file")
	}
	open := func(key, address string) {
		if http.CertFile == "" && !http.Insecure && address != "" && !loopback(address) {
			l.refuse("http", key, "not a loopback address, and without cert_file nothing is encrypted",
				"name cert_file and key_file, or write 127.0.0.1:7480, or insecure=true in [http] where everyone on the way may read")
		}
	}
	open("listen", http.Listen)
	open("worker_listen", http.WorkerListen)
	if http.Listen == "" && http.WorkerListen == "" {
		l.checkUnused("http", "has no effect without listen", "write listen, for example listen=127.0.0.1:7480, or remove the line",
			"cert_file", "key_file")
	}
	if http.Listen == "" {
		for key, on := range map[string]bool{"flock": http.Flock, "disbatch": http.Disbatch} {
			if on {
				l.refuse("http", key, "has no effect without listen", "write listen, for example listen=127.0.0.1:7480, or "+key+"=false")
			}
		}
	}
}

// checkPair refuses a certificate without a key, and a key without a certificate.
func (l *loader) checkPair(section, cert, key string) {
	switch {
	case cert != "" && key == "":
		l.refuse(section, "key_file", "missing, although cert_file is set", "name the file of the certificate's key")
	case cert == "" && key != "":
		l.refuse(section, "cert_file", "missing, although key_file is set", "name the file of the certificate")
	}
}

// checkUnused refuses keys that are given and mean nothing.
func (l *loader) checkUnused(section, problem, remedy string, keys ...string) {
	for _, key := range keys {
		if s := l.file.settings[section+"."+key]; none(s.text) != "" {
			l.refuse(section, key, problem, remedy)
		}
	}
}

func (l *loader) checkTaskDefaults() {
	if e, ok := errors.AsType[*Error](l.file.TaskDefaults.Check()); ok {
		l.refuse(e.Section, e.Key, e.Problem, e.Remedy)
	}
}

func (l *loader) checkServer() {
	if s := &l.file.Server; s.ArchiveDir != "" && len(s.ArchiveRetention) == 0 {
		l.refuse("server", "archive_dir", "without archive_retention nothing is ever written there",
			"write archive_retention, for example 7d, or remove archive_dir")
	}
}

func (l *loader) checkManager() {
	m := &l.file.Manager
	if m.HandlerBackoff > m.HandlerBackoffMax {
		problem := "longer than handler_backoff_max (" + secondsText(m.HandlerBackoffMax) + ")"
		l.refuse("manager", "handler_backoff", problem, "raise handler_backoff_max, or lower handler_backoff")
	}
}

// checkFiles opens the files that this program will need, so that a wrong path
// shows at the start and not with the first connection or fetch.
func (l *loader) checkFiles() {
	redis := &l.file.Redis
	l.checkReadable("redis", "ca_file", redis.CAFile)
	l.checkReadable("redis", "cert_file", redis.CertFile)
	l.checkReadable("redis", "key_file", redis.KeyFile)
	if l.file.Kind == ForServer {
		l.checkReadable("http", "cert_file", l.file.HTTP.CertFile)
		l.checkReadable("http", "key_file", l.file.HTTP.KeyFile)
	}
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

// refuse reports a key whose value is fine alone but not here.
func (l *loader) refuse(section, key, problem, remedy string) {
	l.report(l.errorAt(section, key, problem, remedy))
}

// errorAt makes an error about a key, with its place and value.
func (l *loader) errorAt(sectionName, keyName, problem, remedy string) *Error {
	k, _ := l.schema.section(sectionName).key(keyName)
	s := l.file.settings[sectionName+"."+keyName]
	e := l.fault(sectionName, k, s, invalid(problem, remedy))
	if e.File == "" {
		e.File = l.file.Path
	}
	return e
}

// checkWorker refuses settings of [worker] that contradict others.
func (l *loader) checkWorker() {
	w, redis := &l.file.Worker, &l.file.Redis
	if w.OnRedisLoss == FinishOnLoss && (redis.Sentinel() || redis.Cluster()) {
		l.refuse("worker", "on_redis_loss",
			"with sentinel or cluster, an address where nobody listens does not prove that Redis is away: another may serve",
			"write on_redis_loss=stop")
	}
	if l.withoutRedis {
		l.checkDistant()
	}
	if w.MemoryMax > 0 && w.MemoryMax < mib {
		l.refuse("worker", "memory_max", "less than any program needs", "write a size of at least 1MiB, for example 512MiB, or 0 for no limit")
	}
}

// checkDistant refuses settings of [worker] that cannot be kept over HTTP.
func (l *loader) checkDistant() {
	w := &l.file.Worker
	if w.OnRedisLoss == FinishOnLoss {
		l.refuse("worker", "on_redis_loss", "over HTTP a worker cannot know that nobody reaches Redis", "write on_redis_loss=stop")
	}
	if w.OutputLimit > mib {
		l.refuse("worker", "output_limit", "more than a report over HTTP may have", "write 1MiB; output_max keeps what is longer")
	}
}
