package conn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// History is how far the history of a namespace has come: the epoch, how many
// changes there were, and the newest id that is known to have been given out.
// Redis counts the changes, and each client remembers the most it has seen: so a
// Redis that has lost what it acknowledged is noticed.
type History struct {
	Epoch, Seq, ID int64
	// Life is the one of Redis in which Seq was seen: each start of its process, and each
	// failover, begins another one. Empty where Redis does not say.
	Life string
}

// ParseHistory reads what [History.String] has written.
func ParseHistory(text string) (History, error) {
	var h History
	fields := strings.Fields(text)
	if len(fields) == 4 {
		h.Life = fields[3]
		fields = fields[:3]
	}
	numbers := strings.Join(fields, " ")
	if n, err := fmt.Sscanf(numbers, "%d %d %d", &h.Epoch, &h.Seq, &h.ID); err != nil || n != len(fields) || min(h.Epoch, h.Seq, h.ID) < 0 {
		return History{}, &statemachine.FieldError{Field: "history", Value: text, Want: "epoch, seq and id, three whole numbers, and a life"}
	}
	return h, nil
}

// String is the text of [ParseHistory].
func (h History) String() string {
	text := make([]byte, 0, 96)
	for _, n := range [...]int64{h.Epoch, h.Seq, h.ID} {
		text = append(strconv.AppendInt(text, n, 10), ' ')
	}
	return strings.TrimSpace(string(append(text, h.Life...)))
}

// Before reports whether h has not come as far as o.
func (h History) Before(o History) bool {
	return h.Epoch < o.Epoch || h.Epoch == o.Epoch && h.Seq < o.Seq
}

// memory is the most a Conn has seen of the history. It is safe for use by many
// goroutines.
type memory struct {
	mu   sync.Mutex
	seen History
	// ahead says that some other client has seen more than Redis has.
	ahead bool
	// outlived is the newest life that has begun while this Conn knew a former one.
	outlived string
}

func (m *memory) see(h History, ahead bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.Life != "" && m.seen.Life != "" && h.Life != m.seen.Life {
		m.outlived = h.Life
	}
	if h.Epoch > m.seen.Epoch {
		m.seen.Life = "" // where lives began in former epochs says nothing of this one
	}
	if m.seen.Before(h) {
		m.seen.Epoch, m.seen.Seq = h.Epoch, h.Seq
	}
	if h.Life != "" && !h.Before(m.seen) {
		m.seen.Life = h.Life
	}
	m.seen.ID = max(m.seen.ID, h.ID)
	m.ahead = ahead
}

// witness is the most that was seen, and whether a former life of Redis was.
func (m *memory) witness() (seen History, outlived bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen, m.outlived != "" && m.outlived == m.seen.Life
}

// Saw notes an id that was given out.
func (m *memory) Saw(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.ID = max(m.seen.ID, id)
}

// unseal takes the history off the answer of a script.
func (s *Conn) unseal(name string, answer Reply) (any, error) {
	switch answer.Text(0) {
	case "flushing":
		return nil, fmt.Errorf("%s: %w: %w", name, task.ErrUnreachable, ErrFlushing)
	case "unconfirmed":
		return nil, fmt.Errorf("%s: %w: %w", name, task.ErrUnreachable, ErrUnconfirmed)
	case "behind":
		seen, _ := s.History()
		return nil, fmt.Errorf("%s: %w", name, &HistoryError{Redis: History{Epoch: answer.Number(1), Seq: answer.Number(2)}, Seen: seen})
	}
	s.Memory.see(History{Epoch: answer.Number(0), Seq: answer.Number(1), Life: answer.Text(3)}, answer.Text(2) != "")
	if len(answer) < 5 {
		return nil, nil //nolint:nilnil // the script returned nothing
	}
	return answer[4], nil
}

// History returns the most that this Conn has seen, and whether, at its last
// call, another client had seen more than Redis has, or nobody had confirmed the life
// of Redis: then a server must call [Conn.OpenEpoch].
func (s *Conn) History() (seen History, behind bool) {
	s.Memory.mu.Lock()
	defer s.Memory.mu.Unlock()
	return s.Memory.seen, s.Memory.ahead
}

// Life asks Redis how far the history has come, and in which life of it: where Epoch or Life is another one than before, Redis
// was started anew or failed over meanwhile, and may have lost changes.
func (s *Conn) Life(ctx context.Context) (History, error) {
	_, err := s.Run(ctx, "workers", Subject{}) // of none: the cheapest call that tells
	seen, _ := s.History()
	return seen, err
}

// Remember makes this Conn know of a history that was seen before, by this
// process or by an earlier one.
func (s *Conn) Remember(h History) {
	_, ahead := s.History()
	s.Memory.see(h, ahead)
}

// epochGap is how many ids a new epoch leaves out, beyond those that are known
// to have been given out: more than can be opened between two looks of a server.
const epochGap = 1_000_000

// NewEpoch is what [Conn.OpenEpoch] did.
type NewEpoch struct {
	// Epoch is the new one; 0 if there was no reason for one.
	Epoch int64
	// Confirmed says that the life of Redis was confirmed instead.
	Confirmed bool
	// Lost is how many changes are gone, at least.
	Lost int64
	// FromID and ToID are the last id before, and the last one that is left out:
	// those between may have been given out, and are not there any more.
	FromID, ToID int64
}

// OpenEpoch begins a new epoch if Redis is behind what this Conn, or another
// client that was refused, has seen. What was claimed or registered before is
// over then. Else it confirms the life of Redis, so that ids are given out again, if this
// Conn has seen a former one, which the caller can do without after it has waited
// for one that has. It is a server's business.
func (s *Conn) OpenEpoch(ctx context.Context, waited bool) (NewEpoch, error) {
	seen, outlived := s.Memory.witness()
	r, err := s.RunList(ctx, "epoch", Subject{},
		seen.Epoch, seen.Seq, seen.ID, epochGap, seen.Life, Flag(waited || outlived))
	if err != nil {
		return NewEpoch{}, err
	}
	// Only with a new epoch does what was seen in which life not matter any more.
	if r.Number(0) == 1 {
		s.Memory.see(History{Epoch: r.Number(1), Seq: r.Number(2)}, false)
	} else {
		s.Memory.see(seen, false)
	}
	if r.Number(0) == 0 {
		return NewEpoch{}, nil
	}
	s.Memory.Saw(r.Number(5))
	if r.Number(0) == 2 {
		return NewEpoch{Confirmed: true, FromID: r.Number(4), ToID: r.Number(5)}, nil
	}
	return NewEpoch{Epoch: r.Number(1), Lost: r.Number(3), FromID: r.Number(4), ToID: r.Number(5)}, nil
}

// Epoch is one that a server has opened, because Redis had lost changes.
type Epoch struct {
	Number int64
	// Confirmed says that it is not one: a server has confirmed a life of Redis in that epoch, and left ids out in case that some are lost.
	Confirmed bool
	// At is when it was opened.
	At statemachine.Time
	// Seen is how far the server that opened it had seen the history, Lost how many changes
	// were gone, at least.
	Seen History
	Lost int64
	// FromID and ToID are the last id before, and the last one that is left out. Those after SureID up to FromID were given out after
	// Redis had begun another life and before a server looked: they may have been given out twice.
	FromID, ToID, SureID int64
}

// Epochs are those that servers have opened, the oldest first.
func (s *Conn) Epochs(ctx context.Context) ([]Epoch, error) {
	all, err := s.Gaps(ctx)
	return slices.DeleteFunc(all, func(e Epoch) bool { return e.Confirmed }), err
}

// Gaps are the epochs, and the lives of Redis that were confirmed: whatever has left ids out, the first ids first.
func (s *Conn) Gaps(ctx context.Context) ([]Epoch, error) {
	all, err := s.Redis.HGetAll(ctx, s.Keys.Epochs()).Result()
	if err != nil {
		return nil, s.Failed("epochs", err)
	}
	epochs := make([]Epoch, 0, len(all))
	for number, text := range all {
		var e Epoch
		var at string
		number, _, e.Confirmed = strings.Cut(number, ".")
		n, err := fmt.Sscanf(number+" "+text, "%d %s %d %d %d %d %d %d",
			&e.Number, &at, &e.Seen.Epoch, &e.Seen.Seq, &e.Lost, &e.FromID, &e.ToID, &e.SureID)
		if n == 7 { // of an older server
			e.SureID, err = e.FromID, nil
		}
		if e.At, _ = statemachine.ParseTime(at); err == nil {
			epochs = append(epochs, e)
		}
	}
	slices.SortFunc(epochs, func(a, b Epoch) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.FromID, b.FromID))
	})
	return epochs, nil
}

// Failover reports whether another server may take the place of the one that
// answers now: with Sentinel or Cluster.
func (s *Conn) Failover() bool { return s.where.Sentinel() || s.where.Cluster() }

// FromLostEpoch reports whether the task runs in a round that was claimed in an epoch
// that is over: its worker's report will be refused.
func (s *Conn) FromLostEpoch(t *statemachine.Task) bool {
	if t.State != statemachine.Running || t.Current.Claim == "" {
		return false
	}
	seen, _ := s.History()
	return claimEpoch(t.Current.Claim) < seen.Epoch
}

// claimEpoch is the epoch in which a claim was made. Those of clients that know
// no epochs count as made in the first one.
func claimEpoch(claim string) int64 {
	digits, _, found := strings.Cut(strings.TrimPrefix(claim, "e"), "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || claim[0] != 'e' {
		return 1
	}
	return n
}

// LeftOut says why ids of the epoch may mean nothing.
func (e *Epoch) LeftOut() string {
	why := "Redis had lost changes: if it was given out, it is lost"
	if e.Confirmed {
		why = "Redis had been started anew or failed over"
	}
	return fmt.Sprintf("; ids %d to %d were left out when %s", e.FromID+1, e.ToID, why)
}

// LostIDs is how many ids are known to have been given out and lost: of those
// that were left out, all but the margin.
func (e *Epoch) LostIDs() int64 { return max(0, e.ToID-e.FromID-epochGap) }
