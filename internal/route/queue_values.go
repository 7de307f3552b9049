package route

import (
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// maxDescription is the longest description, in bytes; maxNodes the most nodes in
// a list; longestAging a year.
const (
	maxDescription = 1024
	maxNodes       = 1000
	longestAging   = 365 * 86400 * statemachine.Second
)

func setDescription(q *Queue, s string) error {
	if len(s) > maxDescription || !printable(s) {
		return bad("", s, "a line of printable text of at most 1024 bytes")
	}
	q.Description = s
	return nil
}

func setClass(q *Queue, s string) error {
	if err := CheckClass(s); err != nil {
		return err
	}
	q.Class = s
	return nil
}

func setPaused(q *Queue, s string) error {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		q.Paused = true
	case "", "0", "false", "no", "off":
		q.Paused = false
	default:
		return bad("", s, "true or false")
	}
	return nil
}

func setOrder(q *Queue, s string) error {
	switch Order(s) {
	case "", Fifo:
		q.Order = Fifo
	case Lifo:
		q.Order = Lifo
	default:
		return bad("", s, "fifo or lifo")
	}
	return nil
}

func setAging(q *Queue, s string) error {
	if s == "" {
		q.Aging = DefaultAging
		return nil
	}
	d, err := parseSeconds(s)
	if err != nil || d != 0 && d < statemachine.Second || d > longestAging {
		return bad("", s, "0, which is strict priority, or a number of seconds from 1 to 31536000; write for example 3600 or 1h")
	}
	q.Aging = d
	return nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func queueThreads(q *Queue) *Limit    { return &q.Threads }
func queueMaxThreads(q *Queue) *Limit { return &q.MaxThreads }
func queuePin(q *Queue) *[]string     { return &q.Pin }
func queueIgnore(q *Queue) *[]string  { return &q.Ignore }

func limitOf(at func(*Queue) *Limit) func(*Queue, string) error {
	return func(q *Queue, s string) error {
		l, err := ParseLimit(s)
		if err == nil {
			*at(q) = l
		}
		return err
	}
}

func nodesOf(at func(*Queue) *[]string) func(*Queue, string) error {
	return func(q *Queue, s string) error {
		nodes, err := parseNodes(s)
		if err == nil {
			*at(q) = nodes
		}
		return err
	}
}

// parseNodes takes names separated by commas or blanks; none are nil.
func parseNodes(s string) ([]string, error) {
	nodes := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	for _, n := range nodes {
		if err := CheckNode(n); err != nil {
			return nil, err
		}
	}
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); len(nodes) > maxNodes {
		return nil, bad("", s, "a list of at most 1000 nodes")
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	return nodes, nil
}
