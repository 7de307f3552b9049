package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store/conn"
)

// New makes a Worker for a site, on connections of its own; with Options.Backend site
// may be nil. The error is an *[OptionError]; the site is first talked to by Run.
func New(site *tdf.Site, o Options) (*Worker, error) {
	section, place := config.Defaults().Worker, ""
	if site != nil {
		file := site.Internal.File
		section, place = file.Worker, file.Redis.Mark()+"/"+file.TDF.Namespace
		o.Logger = cmp.Or(o.Logger, site.Internal.Log)
	}
	if r, ok := o.Backend.(*remote); ok {
		place = r.mark()
	}
	opts := complete(o, section)
	if err := config.ValidName("worker", opts.Name); err != nil { // names of files will have it
		return nil, &OptionError{"Name", opts.Name, err.Error()}
	}
	closers, err := opts.open(site, place)
	if err != nil {
		return nil, errors.Join(err, closeAll(closers))
	}
	w, err := assemble(opts)
	if err != nil {
		return nil, errors.Join(err, closeAll(closers))
	}
	w.closers = closers
	return w, nil
}

// Run runs a worker for a site until ctx is done; see [New] and [Worker.Run].
func Run(ctx context.Context, site *tdf.Site, o Options) error {
	w, err := New(site, o)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// connectionReserve is how many connections there are beside one for each slot.
const connectionReserve = 8

// open makes what a worker talks to, fetches with and runs programs in, as far as nobody
// has given it, and returns what ends it.
func (o *options) open(site *tdf.Site, place string) (closers []func() error, err error) {
	if o.Backend == nil && site != nil {
		st, err := site.Internal.Dial(conn.WithPoolSize(o.Slots + connectionReserve))
		if err != nil {
			return nil, err
		}
		o.Backend, closers = st, append(closers, st.Close)
	}
	if len(o.Handlers) > 0 && !o.RunPrograms {
		return closers, nil
	}
	if o.container, err = shim.New(o.containment(place)); err != nil {
		return closers, err
	}
	closers = append(closers, o.container.Close)
	if o.Programs != nil {
		return closers, nil
	}
	fetching := o.fetching()
	fetching.ReadAs, fetching.Blob = o.container.AsOwner, o.Backend.Blob
	programs, err := fetch.New(fetching)
	if err != nil {
		return closers, err
	}
	o.Programs = programs
	return append(closers, programs.Close), nil
}

func closeAll(closers []func() error) error {
	errs := make([]error, 0, len(closers))
	for _, c := range slices.Backward(closers) {
		errs = append(errs, c())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close worker: %w", err)
	}
	return nil
}

// NewGateway makes a gateway of a site, with connections of its own for as many workers as wait at a time. Close ends them.
func NewGateway(site *tdf.Site, waiting int) (*Gateway, error) {
	st, err := site.Internal.Dial(conn.WithPoolSize(waiting + connectionReserve))
	if err != nil {
		return nil, err
	}
	g := &Gateway{site: st, sessions: map[string]*guest{}, rules: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() { st.Listen(ctx, "", func() {}, g.rulesChanged, func(string) {}) })
	g.close = func() error {
		stop()
		listening.Wait()
		return st.Close()
	}
	return g, nil
}
