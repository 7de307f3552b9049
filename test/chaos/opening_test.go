package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/task"
)

const second = time.Second

// perSecond is how many tasks are opened in a second: about as many as can be
// done meanwhile, so that there is work all the time and little in the end.
const perSecond = 4

// commandsPerSecond is how many of them are opened in a second that workers over HTTP may run too.
const commandsPerSecond = 6

// briefPerSecond is how many brief tasks are opened in a second.
const briefPerSecond = 25

// opener opens tasks until it is stopped.
type opener struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	// tasks is what was opened, by id. Read it after stop.
	tasks map[int64]kind
	// reused are the ids that were given out again.
	reused []int64
	err    error
}

func (tr *trial) startOpening(t *testing.T) *opener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &opener{cancel: cancel, tasks: map[int64]kind{}}
	s := tr.Dial(t)
	o.done.Go(func() {
		for n := 0; timing.Pause(ctx, second) && o.err == nil; n += perSecond {
			batch := slices.Repeat([]kind{brief}, briefPerSecond)
			for i := range perSecond {
				batch = append(batch, kinds[(n+i)%len(kinds)])
			}
			for i := range commandsPerSecond {
				batch = append(batch, commands[(n/perSecond*commandsPerSecond+i)%len(commands)])
			}
			o.open(context.WithoutCancel(ctx), s, batch)
		}
	})
	t.Cleanup(func() {
		cancel()
		o.done.Wait()
	})
	return o
}

// open opens tasks as a manager does: under a key, again and again until Redis has
// answered.
func (o *opener) open(ctx context.Context, s *store.Store, batch []kind) {
	specs := make([]task.Definition, len(batch))
	for i := range batch {
		specs[i] = batch[i].spec()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request := tasks.OpenRequest{Key: conn.NewToken(), Specs: specs}
	for {
		ids, err := s.Open(ctx, request)
		if err == nil {
			for i, id := range ids {
				if _, known := o.tasks[id]; known {
					o.reused = append(o.reused, id)
				}
				o.tasks[id] = batch[i]
			}
			return
		}
		if !errors.Is(err, task.ErrUnreachable) || !timing.Pause(ctx, 50*time.Millisecond) {
			o.err = fmt.Errorf("open %s: %w", request.Key, err)
			return
		}
	}
}

// stop ends it, when the last batch is open.
func (o *opener) stop(t *testing.T, r *report) {
	t.Helper()
	o.cancel()
	o.done.Wait()
	if o.err != nil {
		t.Fatal(o.err)
	}
	for _, id := range o.reused {
		r.violate(reused, "%d", id)
	}
}
