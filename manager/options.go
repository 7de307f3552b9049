package manager

import "log/slog"

// Option changes how a Manager is made.
type Option func(*options)

type options struct {
	settings []string
	password string
	log      *slog.Logger
	standIn  bool
	force    bool
}

// WithLogger gives the logger; the default is slog.Default().
func WithLogger(log *slog.Logger) Option {
	return func(o *options) { o.log = log }
}

// WithSettings gives values of the configuration, each "section.key=value" as
// in "redis.host=localhost". They win over environment and file, and together
// they may take the place of a file. Secrets are refused here; see
// [WithPassword].
func WithSettings(settings ...string) Option {
	return func(o *options) { o.settings = append(o.settings, settings...) }
}

// WithPassword gives the password of Redis, [redis] password. It wins over the
// file and the environment.
func WithPassword(password string) Option {
	return func(o *options) { o.password = password }
}

// StandIn makes a manager that only keeps the place of a project's own one: its
// Run refuses with [ErrManagerAlive] while such a one is alive on the
// namespace, unless forced. The command "tdf-manager run" is one.
func StandIn(force bool) Option {
	return func(o *options) { o.standIn, o.force = true, force }
}
