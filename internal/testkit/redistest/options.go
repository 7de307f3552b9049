package redistest

import "os"

// Option changes how a redis-server is started.
type Option func(*settings)

// settings are what the options of one server add up to.
type settings struct {
	config   []string
	environ  []string
	password string
	// form says how the directives are given, and to what.
	form form
	// base is a redis.conf that is read first; empty for none.
	base string
	// program is the redis-server that is run; empty for the one in PATH.
	program string
	// disk is the size of a file system for the append-only file; empty for none.
	disk string
}

// WithAppendOnly makes every write durable (appendfsync always), so that the
// data survives [Server.Kill] and [Server.Restart]. Default: nothing is kept.
func WithAppendOnly() Option {
	return func(s *settings) {
		s.config = append(s.config, "--appendonly", "yes", "--appendfsync", "always")
	}
}

// WithConfig sets one directive of redis.conf, for example
// WithConfig("maxmemory-policy", "allkeys-lru").
func WithConfig(directive string, values ...string) Option {
	return func(s *settings) {
		s.config = append(s.config, "--"+directive)
		s.config = append(s.config, values...)
	}
}

// WithConfigFile lets the server read a redis.conf, of which only its place (address, directory, log) is set otherwise.
// Default: none, nothing is kept, and nothing evicted.
func WithConfigFile(path string) Option {
	return func(s *settings) { s.base = path }
}

// WithEnv adds NAME=value entries to the environment of redis-server, for
// example LD_PRELOAD. Default: that of the test binary.
func WithEnv(entries ...string) Option {
	return func(s *settings) { s.environ = append(s.environ, entries...) }
}

// WithRedis62 runs the redis-server of Redis 6.2 that TDF_TEST_REDIS62 names. Without it, the one in PATH.
func WithRedis62() Option {
	return func(s *settings) { s.program = os.Getenv("TDF_TEST_REDIS62") }
}

// WithPassword makes the default user need a password. Default: none.
func WithPassword(password string) Option {
	return func(s *settings) {
		s.password = password
		s.config = append(s.config, "--requirepass", password)
	}
}
