package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Site implements [Sessions].
func (r *remote) Site(ctx context.Context) (Site, error) {
	var v SiteView
	err := r.call(ctx, http.MethodGet, "/site", nil, &v, 0)
	return Site{Namespace: v.Namespace, Mark: r.mark(), Grace: timing.FromStd(time.Duration(v.Grace))}, err
}

// Register implements [Sessions]. At first the gateway is to leave the tasks of a former session as they are: what the worker has kept on
// its disk of them is reported before they are lost.
func (r *remote) Register(ctx context.Context, reg task.Registration) (Registered, error) {
	r.mu.Lock()
	keep := !r.yields
	r.mu.Unlock()
	var begun struct {
		Standing
		Lost []int64 `json:"lost"`
	}
	err := r.call(ctx, http.MethodPost, "/session", &SessionRequest{
		Node: reg.Node, Host: reg.Host, Slots: reg.Slots, Version: reg.Version, PID: reg.PID, Containment: reg.Containment, Env: reg.Env,
		Labels: strings.Join(reg.Labels, ","), Resources: reg.Resources.Text(), Classes: strings.Join(reg.Classes, ","),
		MaxThreads: limitText(reg.MaxThreads), HandlersOnly: reg.HandlersOnly, Identity: reg.Identity, Replaces: reg.Replaces, Keep: keep,
	}, &begun, 0)
	if err != nil {
		return Registered{}, nameTaken(reg.Name, err)
	}
	answer := Registered{Now: task.Stamp(begun.Now)}
	if begun.Incarnation == 0 {
		for _, id := range begun.Lost {
			lost := statemachine.Task{ID: id, State: statemachine.Running, EndBefore: statemachine.Never}
			answer.Former = append(answer.Former, Former{Task: lost})
		}
		return answer, nil
	}
	answer.Session = Session{
		Name: reg.Name, Incarnation: begun.Incarnation, Lease: timing.FromStd(time.Duration(begun.Lease)), Order: begun.Order,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.yields, r.session = false, begun.Incarnation
	clear(r.held)
	return answer, nil
}

// limitText is a limit as configurations have it, empty for none.
func limitText(l task.Limit) string {
	if l == task.Unlimited {
		return ""
	}
	return l.Text()
}

// nameTaken is a *[NameTakenError] if that is why a registration was refused.
func nameTaken(name string, err error) error {
	e, ok := errors.AsType[*refusal](err)
	if !ok || e.status != http.StatusConflict {
		return err
	}
	for _, part := range e.parts {
		var h NameHolder
		if part.Location != "name" || json.Unmarshal(part.Value, &h) != nil {
			continue
		}
		return &NameTakenError{
			Holder: task.Worker{
				Registration: task.Registration{Name: name, Node: h.Node, Host: h.Host, PID: h.PID, Identity: h.Identity},
				Incarnation:  h.Incarnation, Heartbeat: h.Heartbeat,
			},
			Silent: timing.FromStd(time.Duration(h.Silent)), Lease: timing.FromStd(time.Duration(h.Lease)),
		}
	}
	return err
}

// Renew implements [Sessions]. Over HTTP nobody can be certain that nobody reaches the site: the error never matches [ErrAway].
func (r *remote) Renew(ctx context.Context, session Session, h Heartbeat) (Renewal, error) {
	var s Standing
	err := r.call(ctx, http.MethodPut, "/session", &SessionBeat{
		Incarnation: session.Incarnation, Busy: h.Busy, Stuck: h.Stuck, State: h.State, Reason: oneLine(h.Reason), Queues: h.Queues,
	}, &s, 0)
	if err != nil {
		return Renewal{}, err
	}
	n := Renewal{Lease: timing.FromStd(time.Duration(s.Lease)), Order: s.Order, Now: task.Stamp(s.Now), Redis: task.Stamp(s.Redis)}
	for _, stop := range s.Stops {
		if stop.Ended == EndedOverdue {
			n.Overdue = append(n.Overdue, stop.Task)
		} else {
			n.Stops = append(n.Stops, stop.Task)
		}
	}
	for _, f := range s.Followed {
		n.Followed = append(n.Followed, Followed{ID: f.Task, Since: task.Stamp(f.Since)})
	}
	return n, nil
}

// Leave implements [Sessions].
func (r *remote) Leave(ctx context.Context, session Session) error {
	err := r.call(ctx, http.MethodDelete, "/session?incarnation="+strconv.FormatInt(session.Incarnation, 10), nil, nil, 0)
	if statusOf(err) == http.StatusConflict {
		return fmt.Errorf("%w: %w", errHolding, err)
	}
	return err
}

// Listen implements [Sessions]. The gateway has the rules, so they never change here.
func (r *remote) Listen(ctx context.Context, _ string, renew, _ func(), _ func(string)) {
	pause := timing.Backoff{First: time.Second, Most: answerTime}
	for ctx.Err() == nil {
		var answer struct {
			Called bool `json:"called"`
		}
		if err := r.call(ctx, http.MethodGet, "/call", nil, &answer, mostWait); err != nil {
			timing.Pause(ctx, pause.Next()) // the heartbeats tell it as well
			continue
		}
		pause.Reset()
		if answer.Called {
			renew()
		}
	}
}

// Errand implements [Sessions]: nobody asks this worker for anything.
func (r *remote) Errand(context.Context, string, string, func(string) string) error { return nil }
