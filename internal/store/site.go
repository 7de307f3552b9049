package store

import (
	"cmp"
	"log/slog"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/conn"
)

// Site is what a tdf.Site holds for the packages that work on it: a configuration, a
// logger, and connections of which each daemon makes its own.
type Site struct {
	// File is the whole configuration; what nobody has set is at its default.
	File *config.File
	// Log is never nil.
	Log *slog.Logger
	// Store has the connections of everybody who needs no others.
	Store *Store

	opts []conn.Option
}

// Open makes a Site, which connects lazily. A nil log stands for [slog.Default]. The
// caller closes its Store. The options are those of all connections.
func Open(file *config.File, log *slog.Logger, opts ...conn.Option) (Site, error) {
	s := Site{File: file, Log: cmp.Or(log, slog.Default()), opts: opts}
	var err error
	s.Store, err = s.Dial()
	return s, err
}

// Dial makes further connections, which the caller closes.
func (s *Site) Dial(opts ...conn.Option) (*Store, error) {
	return Dial(s.File.Redis, s.File.TDF.Namespace, append(opts, s.opts...)...)
}
