package task

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// ChangeEntry is an entry of the log of changes: what somebody has changed in a namespace. It has no secrets: no tokens, inputs, variables
// or parameters.
type ChangeEntry struct {
	// ID is the number of the entry, counted from 1.
	ID int64 `json:"id,omitzero"`
	// At is when the entry was made, right after the change.
	At time.Time `json:"at,omitzero"`
	// By names who wanted the change: "token NAME" over HTTP, USER@HOST on the command line.
	By string `json:"by"`
	// What is the verb of the command line that makes such a change, such as cancel or queue set.
	What string `json:"what"`
	// On are the ids of tasks as ranges, or names, such as 1-3,7 or nightly; j7 is a job or a plan. The last one is "..." if there are
	// more than an entry has room for.
	On string `json:"on"`
	// Asked says how the tasks were selected if not by their ids, and the names of attributes that were set.
	Asked string `json:"asked,omitempty"`
	// Count is how many tasks were changed, or of what On names.
	Count int64 `json:"count"`
	// Reason is the one that was given, Request the id of the request over HTTP.
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
	// Damaged says that the entry cannot be read: no program of TDF has written it like this.
	Damaged bool `json:"damaged,omitempty"`
}

// Concerns reports whether the entry names a queue, a token, a job, a task or whatever else has that name or id, by itself, in a range
// or as what was asked for.
func (e *ChangeEntry) Concerns(name string) bool {
	if slices.Contains(strings.Fields(e.Asked), name) {
		return true
	}
	id, err := strconv.ParseInt(name, 10, 64)
	for part := range strings.SplitSeq(e.On, ",") {
		if part == name {
			return true
		}
		first, last, ranged := strings.Cut(part, "-")
		from, err1 := strconv.ParseInt(first, 10, 64)
		to, err2 := strconv.ParseInt(last, 10, 64)
		if err == nil && ranged && err1 == nil && err2 == nil && from <= id && id <= to {
			return true
		}
	}
	return false
}
