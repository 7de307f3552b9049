package store

// WithClock replaces the Lua text that defines time(), which is TIME of Redis, so
// that a test can set it: seconds and microseconds. The text may use KEYS[1], the
// key of meta.
func WithClock(lua string) Option {
	return func(o *options) { o.clock = lua }
}

// WithRetries sets how often a command is repeated after a network error;
// -1 means never. The default is that of go-redis, three times.
func WithRetries(n int) Option {
	return func(o *options) { o.retries = n }
}

// WithPoolSize sets how many connections there may be at a time, besides those
// of heartbeats and subscriptions. The default is that of go-redis, ten for
// each core. A wait in [Store.WaitWork] or [Store.Chunks] occupies one.
func WithPoolSize(n int) Option {
	return func(o *options) { o.poolSize = n }
}
