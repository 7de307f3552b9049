package manager

import (
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// The hash fields of the reasons.
const (
	cancelReasonField = "cancel_reason"
	holdField         = "hold"
)

// order is a decided move with what is recorded of it.
func (c *changer) order(move statemachine.Move, bucket store.Bucket, now statemachine.Time) store.Order {
	o := store.Order{Move: move, Writer: c.m.name, Bucket: bucket, Lines: []store.Line{{At: now, Text: c.line(&move)}}}
	switch {
	case c.event == statemachine.Unblock:
		o.Drop = []string{holdField}
	case c.event == statemachine.Hold:
		o.Fields = []string{holdField, orText(c.reason, "held by "+c.by)}
	case c.reason != "":
		o.Fields = []string{cancelReasonField, c.reason}
	}
	return o
}

// line is what the task's log says of who wanted the change, and why.
func (c *changer) line(move *statemachine.Move) string {
	done := map[statemachine.Event]string{statemachine.Hold: "held", statemachine.Unblock: "released"}[c.event]
	switch {
	case move.AskStop:
		done = "stop asked for"
	case move.Event == statemachine.Cancel:
		done = "cancelled"
	}
	text := done + " by " + c.by
	if c.reason != "" {
		text += ": " + c.reason
	}
	return text
}
