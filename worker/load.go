package worker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
)

// Load makes a Worker from a configuration file as tdf-worker reads it, with the
// sections [redis], [tdf] and optionally [worker]; with an empty file name
// everything comes from the environment (TDF_SECTION_KEY). change, if not nil,
// may change the options: register Handlers, set RunPrograms, Log or Slots.
//
// The caller closes the Worker after Run.
func Load(name, file string, change func(*Options)) (*Worker, error) {
	cfg, err := config.Load(file, config.ForWorker)
	if err != nil {
		return nil, err
	}
	return Assemble(name, cfg, change)
}

// Assemble is Load with the configuration loaded.
func Assemble(name string, cfg *config.File, change func(*Options)) (w *Worker, err error) {
	if err := config.ValidName("worker", name); err != nil {
		return nil, err
	}
	o := FromConfig(cfg.Worker)
	o.Name = name
	if change != nil {
		change(&o)
	}
	var closers []func() error
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(closers))
		}
	}()
	st, err := store.Dial(cfg.Redis, cfg.TDF.Namespace, conn.WithPoolSize(o.Slots+poolReserve))
	if err != nil {
		return nil, err
	}
	o.Backend, closers = st, append(closers, st.Close)
	if len(o.Handlers) == 0 || o.RunPrograms {
		programs, err := o.addPrograms(cfg)
		if err != nil {
			return nil, err
		}
		closers = append(closers, programs.Close, o.Container.Close)
	}
	if w, err = New(o); err != nil {
		return nil, err
	}
	w.closers = closers
	return w, nil
}

// poolReserve is how many connections there are beside one for each slot.
const poolReserve = 8

// addPrograms makes what fetches and what contains programs.
func (o *Options) addPrograms(cfg *config.File) (*fetch.Fetcher, error) {
	contain := Containment(cfg.Worker, cfg.Redis, cfg.TDF.Namespace, o.Name)
	contain.Log = o.Log
	var err error
	if o.Container, err = shim.New(contain); err != nil {
		return nil, err
	}
	fetching := fetchOptions(o.Name, cfg.Worker)
	fetching.ReadAs = o.Container.AsOwner
	programs, err := fetch.New(fetching)
	if err != nil {
		return nil, err
	}
	o.Programs = programs
	return programs, nil
}

// Close closes what Load has opened. Call it after Run.
func (w *Worker) Close() error { return closeAll(w.closers) }

func closeAll(closers []func() error) error {
	errs := make([]error, 0, len(closers))
	for _, c := range closers {
		errs = append(errs, c())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close worker: %w", err)
	}
	return nil
}

// fetchOptions are what the section [worker] says about fetching.
func fetchOptions(name string, c config.Worker) fetch.Options {
	o := fetch.DefaultOptions()
	o.Dir, o.Worker = c.ProgramDir, name
	o.MaxDownloadBytes, o.MaxBytes = c.FetchMaxBytes, c.FetchMaxBytes
	o.MaxFileBytes, o.MaxEntries = c.FetchMaxFileBytes, c.FetchMaxEntries
	o.MaxRedirects, o.Timeout = c.FetchMaxRedirects, c.FetchTimeout
	o.NetrcFile, o.CAFile = c.NetrcFile, c.CAFile
	o.SSHExtra = strings.Fields(c.SSHOptions)
	o.RsyncPath, o.RequirePinned = c.RsyncPath, c.RequirePinned
	return o
}
