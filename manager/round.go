package manager

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// Round is the record of one round of a task. What a worker did not record, and
// clients of the original record little, is zero.
type Round struct {
	Number int
	// Worker is the name of the worker that ran it, Node that of its host, and
	// Incarnation which start of that worker it was.
	Worker, Node string
	Incarnation  int64
	// Claim identifies the worker's hold on the task in this round.
	Claim string
	// Output and Error are what the program wrote to stdout and stderr; Error is
	// also where TDF itself says what went wrong. Of very long ones head and tail
	// are there, with a line between them that tells how much was left out.
	Output, Error string
	// Stderr is what the program wrote to stderr where that was no error
	// (FailOnExit).
	Stderr string
	// OutputBytes and ErrorBytes are the sizes of what was written, also where
	// it was cut.
	OutputBytes, ErrorBytes int64
	// Dropped says that output and error are kept no longer, because the task
	// had very many rounds ([worker] keep_rounds).
	Dropped bool
	// ExitCode is the exit code as text, empty if the program did not exit;
	// Signal is the signal that ended it, such as "killed".
	ExitCode, Signal string
	// UserTime and SystemTime are the processor time of all its processes,
	// MaxMemory the most memory one of them had, in bytes.
	UserTime, SystemTime time.Duration
	MaxMemory            int64
	// ProgramSHA256 is the hash of the program's archive or script, in hex.
	ProgramSHA256 string
	// Class is what kind of failure the round was; empty if it did not fail.
	Class statemachine.Class
	// Resources is what the round got of its node, by name.
	Resources map[string]Allotted
	// Progress is how far the program last said it was.
	Progress RoundProgress
	// Stamps are the moments of the round by name: "open", "running", "executed",
	// "failure", "timeout" and the outcomes.
	Stamps map[string]statemachine.Time

	outputHash, errorHash string // recorded only where the text was cut
}

// OutputSHA256 is the hash, in hex, of all that was written to stdout; empty if
// that is not kept.
func (r *Round) OutputSHA256() string { return r.hash(r.outputHash, r.Output, r.OutputBytes) }

// ErrorSHA256 is the hash of what was written to stderr, or, where nothing was
// cut, of Error with what TDF itself has to say.
func (r *Round) ErrorSHA256() string { return r.hash(r.errorHash, r.errorText(), r.ErrorBytes) }

func (r *Round) hash(recorded, text string, size int64) string {
	switch {
	case recorded != "":
		return recorded
	case r.Dropped && text == "" || size != int64(len(text)):
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// errorText is what the program wrote to stderr, an error or not.
func (r *Round) errorText() string {
	if r.Error == "" {
		return r.Stderr
	}
	return r.Error
}

// newRound reads the hash fields of round n.
func newRound(fields map[string]string, n int) Round {
	base := (&store.Task{Fields: fields}).Round(n)
	get := func(name string) string { return fields[statemachine.RoundField(n, name)] }
	r := Round{
		Number: n, Worker: base.Worker, Output: base.Output, Error: base.Error, ExitCode: base.ExitCode, Stamps: base.Stamps,
		Node: get("node"), Incarnation: number(get("incarnation")), Claim: get("claim"), Stderr: get("stderr"),
		Dropped: get("dropped") != "", Signal: get("signal"),
		UserTime: seconds(get("user_time")), SystemTime: seconds(get("system_time")), MaxMemory: number(get("max_memory")),
		ProgramSHA256: get("program_sha256"), Progress: ParseProgress(get("progress")),
		Class: statemachine.Class(get("class")), Resources: allottedOf(get("resources")),
		outputHash: get("output_sha256"), errorHash: get("error_sha256"),
	}
	r.OutputBytes = sizeOf(get("output_bytes"), r.Output)
	r.ErrorBytes = sizeOf(get("error_bytes"), r.errorText())
	return r
}

// sizeOf is the recorded size, where there is none that of the text.
func sizeOf(recorded, text string) int64 {
	if recorded == "" {
		return int64(len(text))
	}
	return number(recorded)
}

// number reads what another client may have written; 0 if it is not a number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s > 0 && s < float64(1<<62)/float64(time.Second)) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// Allotted is a part of a resource of a node.
type Allotted struct {
	Count int
	// IDs says which pieces, counted from 0, where the node tells them apart.
	IDs []int
}

// allotment is one resource in the hash field "<round>:resources": gpu:2[0 3].
var allotment = regexp.MustCompile(`(\w+):(\d+)\[([\d ]*)\]`)

// allottedOf reads that field; nil for nothing.
func allottedOf(text string) map[string]Allotted {
	var got map[string]Allotted
	for _, m := range allotment.FindAllStringSubmatch(text, -1) {
		if got == nil {
			got = map[string]Allotted{}
		}
		a := Allotted{Count: int(number(m[2]))}
		for id := range strings.FieldsSeq(m[3]) {
			if n, err := strconv.Atoi(id); err == nil {
				a.IDs = append(a.IDs, n)
			}
		}
		got[m[1]] = a
	}
	return got
}

// RoundProgress is how far a program says it has come: what it wrote as
// "progress=0.4 text" to the file that $TDF_CONTROL names.
type RoundProgress struct {
	// Part is from 0 to 1, negative if the program did not say.
	Part float64
	Text string
}

// ParseProgress reads the hash field "<round>:progress": a number from 0 to 1,
// a text, or both.
func ParseProgress(field string) RoundProgress {
	field = strings.TrimSpace(field)
	word, rest, _ := strings.Cut(field, " ")
	part, err := strconv.ParseFloat(word, 64)
	if err != nil || !(part >= 0 && part <= 1) {
		return RoundProgress{Part: -1, Text: field}
	}
	return RoundProgress{Part: part, Text: strings.TrimSpace(rest)}
}

// IsZero reports whether the program said nothing.
func (p RoundProgress) IsZero() bool { return p.Part < 0 && p.Text == "" }

// String is for people: "40% text".
func (p RoundProgress) String() string {
	if p.Part < 0 {
		return p.Text
	}
	percent := strconv.Itoa(int(p.Part*100+1e-9)) + "%"
	return strings.TrimSpace(percent + " " + p.Text)
}
