package fleet

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
)

// ManagerAllowance is how long a manager that says nothing counts as alive.
const ManagerAllowance = 15 * time.Second

// ManagerRecord says that a manager is alive; it is repeated at least every five
// seconds.
type ManagerRecord struct {
	// Instance is unique for the process, Name is for people.
	Instance, Name string
	// Standby marks the ready-made manager, which must not handle what a
	// project's own manager waits for.
	Standby bool
	// Force lets a stand-in run beside a project's own manager.
	Force bool
}

// RegisterManager records the presence. For a stand-in it returns an error matching
// [conn.ErrManagerAlive] while a project's own manager is alive, unless forced.
func (s *Fleet) RegisterManager(ctx context.Context, p ManagerRecord) error {
	kind, refuse := "own", ""
	if p.Standby {
		kind, refuse = "standin", conn.Flag(!p.Force)
	}
	v, err := s.Run(ctx, "presence", conn.Subject{},
		p.Instance, kind, p.Name, int(ManagerAllowance.Seconds()), refuse)
	if err != nil {
		return err
	}
	if name, ok := v.(string); ok && name != "" {
		return fmt.Errorf("%w: %s", conn.ErrManagerAlive, conn.Quote(name))
	}
	return nil
}

// DeregisterManager takes the presence back.
func (s *Fleet) DeregisterManager(ctx context.Context, p ManagerRecord) error {
	if err := s.Redis.HDel(ctx, s.Keys.Managers(), p.Instance).Err(); err != nil {
		return s.Failed("deregister manager", err)
	}
	return nil
}

// Handling is the lease under which a manager gives ended tasks to its handlers:
// no other manager gets those it holds. It ends if it is not renewed.
type Handling struct {
	// Instance names the lease; it is unique and never used again.
	Instance string
	// Lease is how long the manager may be silent.
	Lease time.Duration
}

// NewHandling names a lease so that others can tell how long they must watch it.
func NewHandling(lease time.Duration) Handling {
	return Handling{Instance: conn.NewToken() + "/" + strconv.FormatFloat(lease.Seconds(), 'f', -1, 64), Lease: lease}
}

// HandlingWatch is what one manager sees of the leases of all others. A lease is
// over when it was seen unchanged for all of its length, by the clock of the
// watcher: no step of the clock of Redis ends it, and its holder, who counts from
// before it renewed, knows sooner. It is safe for use by many goroutines.
type HandlingWatch struct {
	// Now is a clock that does not jump; time.Now if nil.
	Now func() time.Time

	mu   sync.Mutex
	seen map[string]sight // by instance
}

// sight is a lease as it is since it was seen first, and when it is over if it
// stays as it is.
type sight struct {
	value string
	over  time.Time
}

func (w *HandlingWatch) now() time.Time {
	if w.Now == nil {
		return time.Now()
	}
	return w.Now()
}

// saw notes all leases as they are, or were a moment ago. One whose name does not
// say its length is taken to last as long as the caller's.
func (w *HandlingWatch) saw(leases map[string]string, otherwise time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, seen := w.now(), make(map[string]sight, len(leases))
	for instance, value := range leases {
		s, known := w.seen[instance]
		if !known || s.value != value {
			s = sight{value, now.Add(lengthOf(instance, otherwise))}
		}
		seen[instance] = s
	}
	w.seen = seen
}

// lengthOf reads what [NewHandling] wrote.
func lengthOf(instance string, otherwise time.Duration) time.Duration {
	_, seconds, _ := strings.Cut(instance, "/")
	if length, err := time.ParseDuration(seconds + "s"); err == nil && length > 0 {
		return length
	}
	return otherwise
}

// over returns the leases that are over, with their values.
func (w *HandlingWatch) over() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, over := w.now(), map[string]string{}
	for instance, s := range w.seen {
		if !now.Before(s.over) {
			over[instance] = s.value
		}
	}
	return over
}

// Next returns how long it is until one of the leases may be over, but at most
// that long.
func (w *HandlingWatch) Next(atMost time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, next := w.now(), atMost
	for _, s := range w.seen {
		next = min(next, s.over.Sub(now))
	}
	return max(0, next)
}

// BeginHandling begins a lease. Those of the instances it replaces, whose
// handlers have all returned, are over at once.
func (s *Fleet) BeginHandling(ctx context.Context, h Handling, w *HandlingWatch, replaces ...string) error {
	return s.keep(ctx, h, w, "begin", replaces, nil)
}

// KeepHandling renews the lease, and ends those of others that were watched for
// long enough. The error matches [conn.ErrHandlingLost] if it is over, or if one of the
// ids, which the manager holds, is another's.
func (s *Fleet) KeepHandling(ctx context.Context, h Handling, w *HandlingWatch, ids ...int64) error {
	return s.keep(ctx, h, w, "renew", nil, ids)
}

// EndHandling ends the lease: others may have at once whatever it holds. It is
// no error if it is over already.
func (s *Fleet) EndHandling(ctx context.Context, h Handling) error {
	_, err := s.kept(ctx, h, &HandlingWatch{}, "end", nil, nil)
	return err
}

func (s *Fleet) keep(ctx context.Context, h Handling, w *HandlingWatch, what string, replaces []string, ids []int64) error {
	kept, err := s.kept(ctx, h, w, what, replaces, ids)
	if err == nil && !kept {
		return fmt.Errorf("keep: %w", conn.ErrHandlingLost)
	}
	return err
}

// kept uses the connections of the heartbeats, so that no transfer delays it.
func (s *Fleet) kept(ctx context.Context, h Handling, w *HandlingWatch, what string, replaces []string, ids []int64) (bool, error) {
	over := w.over()
	args := append(conn.Args([]any{h.Instance, what, h.Lease.Seconds(), len(replaces)}, replaces...), len(over))
	for instance, value := range over {
		args = append(args, instance, value)
	}
	v, err := s.RunOn(ctx, s.Session, "keep", conn.Subject{}, conn.Args(args, ids...)...)
	if err != nil {
		return false, err
	}
	w.saw(conn.AsReply(v).List(1).Fields(), h.Lease)
	return conn.AsReply(v).Number(0) == 1, nil
}
