package chaos

import (
	"fmt"
	"slices"
	"time"
)

// broken is a promise that was not kept, or a run that proves too little.
type broken string

const (
	lost        broken = "lost" // a task that was opened is not there
	reused      broken = "ids given twice"
	unfinished  broken = "not archived"    // it did not end, or not as it had to
	doubled     broken = "doubled results" // a round was recorded twice
	twice       broken = "archived twice"
	survivor    broken = "survivors"        // a process of a round is left
	removed     broken = "files removed"    // that were not the worker's
	overlap     broken = "overlaps"         // two rounds of a task lived at once
	begunAgain  broken = "rounds run twice" // under the same number
	handledOnce broken = "handled by two at once"
	unhandled   broken = "archived without being handled"
	record      broken = "records" // what Redis holds is not what the programs did
	auditor     broken = "auditor findings"
	illegal     broken = "illegal steps" // in the stream of events
	ended       broken = "ended by themselves"
	unrecovered broken = "not recovered"
	spared      broken = "faults missing" // the run has shown nothing of them
)

// promises are all, in the order of the report.
var promises = []broken{
	lost, reused, unfinished, doubled, twice, survivor, removed, overlap, begunAgain, handledOnce, unhandled, record, auditor, illegal,
	ended, unrecovered, spared,
}

// recovery is how long things took until they went on, in seconds.
type recovery struct {
	Times  int     `json:"times"`
	Median float64 `json:"median_s"`
	Max    float64 `json:"max_s"`
}

// report is what a run has shown.
type report struct {
	Seed     uint64             `json:"seed"`
	LeftOut  map[class]string   `json:"left_out,omitempty"`
	Faults   map[class]int      `json:"faults"`
	Recovery map[class]recovery `json:"recovery"`
	Seconds  struct {
		Harm  float64 `json:"harm"`
		Drain float64 `json:"drain"`
	} `json:"seconds"`
	Tasks      int            `json:"tasks"`
	Ends       map[string]int `json:"ends"`
	Executions int            `json:"executions"`
	// Losses, timeouts and so on are summed up over all tasks.
	Losses   int `json:"losses"`
	Timeouts int `json:"timeouts"`
	Fails    int `json:"fails"`
	Releases int `json:"releases"`
	// HandledAgain counts the tasks that a handler got once more.
	HandledAgain int `json:"handled_again"`
	// Verdicts counts the workers that servers found dead, Restarts the members that
	// ended by themselves because Redis, disk or network were away.
	Verdicts int `json:"verdicts"`
	Restarts int `json:"restarts"`
	// Ahead counts the tasks whose last round was claimed ahead.
	Ahead int `json:"ahead"`
	// Mounts counts the programs that were killed with something mounted.
	Mounts int `json:"mounts"`
	// HistoryLosses counts the epochs that servers opened because Redis had
	// forgotten what it had acknowledged; Forgotten are the tasks that it may have
	// cost, as the servers say.
	HistoryLosses int `json:"history_losses"`
	Forgotten     int `json:"forgotten"`
	// RunAgain counts the rounds that ran twice, or beside a later one, because of
	// such a loss.
	RunAgain int      `json:"run_again"`
	OverHTTP overHTTP `json:"over_http"`
	// Events is how many steps were replayed.
	Events     int            `json:"events"`
	Broken     map[broken]int `json:"broken"`
	Violations []string       `json:"violations"`

	settings settings
}

func newReport(s settings) *report {
	r := &report{
		Seed: s.seed, LeftOut: map[class]string{}, Faults: map[class]int{}, Recovery: map[class]recovery{},
		Ends: map[string]int{}, Broken: map[broken]int{}, Violations: []string{}, settings: s,
	}
	for _, b := range promises {
		r.Broken[b] = 0
	}
	r.Seconds.Harm = s.duration.Seconds()
	return r
}

// violate notes a broken promise.
func (r *report) violate(b broken, format string, args ...any) {
	r.Broken[b]++
	r.Violations = append(r.Violations, string(b)+": "+fmt.Sprintf(format, args...))
}

// leaveOut notes a fault that cannot be made here.
func (r *report) leaveOut(c class, why error) { r.LeftOut[c] = why.Error() }

// recovered notes how long things took after the faults of a class.
func (r *report) recovered(c class, took []time.Duration) {
	slices.Sort(took)
	r.Recovery[c] = recovery{
		Times: len(took), Median: took[len(took)/2].Seconds(), Max: took[len(took)-1].Seconds(),
	}
}
