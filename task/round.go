package task

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Round is the record of one round of a task. What a worker did not record, and
// clients of the original record little, is zero.
type Round struct { //nolint:recvcheck // a value prints itself too
	Number int `json:"number"`
	// Worker is the name of the worker that ran it, Node that of its host, and
	// Incarnation which start of that worker it was.
	Worker      string `json:"worker,omitempty"`
	Node        string `json:"node,omitempty"`
	Incarnation int64  `json:"incarnation,omitempty"`
	// Claim identifies the worker's hold on the task in this round.
	Claim string `json:"claim,omitempty"`
	// Stamps are the moments of the round by name: "open", "running", "executed",
	// "failure", "timeout" and the outcomes; "begun" where its worker had claimed it ahead.
	Stamps map[string]time.Time `json:"stamps,omitempty"`
	// ExitCode is nil if the program did not exit; Signal is the signal that ended
	// it, such as "killed".
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// Class is what kind of failure the round was; empty if it did not fail.
	Class statemachine.Class `json:"class,omitempty"`
	// Permanent says that the round failed and that its handler ruled out another one
	// (worker.Permanent).
	Permanent bool `json:"permanent,omitempty"`
	// Output and Error are what the program wrote to stdout and stderr; Error is
	// also where TDF itself says what went wrong. Of very long ones head and tail
	// are there, with a line between them that tells how much was left out.
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	// Stderr is what the program wrote to stderr where that was no error
	// (FailOnExit).
	Stderr string `json:"stderr,omitempty"`
	// Trace is the stack of a panic of the handler, at most 8 KiB of it.
	Trace string `json:"trace,omitempty"`
	// Result is what the program named as its result, empty where that is its output.
	Result string `json:"result,omitempty"`
	// OutputBytes and ErrorBytes are the sizes of what was written, also where
	// it was cut; OutputHash and ErrorHash are recorded only there (see
	// [Round.OutputSHA256]).
	OutputBytes int64  `json:"-"`
	ErrorBytes  int64  `json:"-"`
	OutputHash  string `json:"-"`
	ErrorHash   string `json:"-"`
	// Dropped says that output and error are kept no longer, because the task
	// had very many rounds ([worker] keep_rounds).
	Dropped bool `json:"dropped,omitempty"`
	// UserTime and SystemTime are the processor time of all its processes,
	// MaxMemory the most memory one of them had, in bytes.
	UserTime   time.Duration `json:"-"`
	SystemTime time.Duration `json:"-"`
	MaxMemory  int64         `json:"max_memory,omitempty"`
	// ProgramSHA256 is the hash of the program's archive or script, in hex.
	ProgramSHA256 string `json:"program_sha256,omitempty"`
	// Files are those that the round has returned (see Spec.Return), if any.
	Files Files `json:"files,omitzero"`
	// Whole has the streams of which Output and Error are only excerpts, as files named output and error, or, where not all
	// of one could be kept ([worker] output_max), output.cut and error.cut. Each is read as Files are.
	Whole []Files `json:"whole,omitempty"`
	// Resources is what the round got of its node, by name.
	Resources map[string]Allotted `json:"resources,omitempty"`
	// Progress is how far the program last said it was.
	Progress Progress `json:"progress,omitzero"`
	// End is the event by which the worker closed the round.
	End statemachine.Event `json:"end,omitempty"`
	// ETA is when the work wants to be done again, zero if it did not say (see package series).
	ETA time.Time `json:"eta,omitzero"`
	// Status is what the program itself says became of it, as Disbatch numbers it: 1 for well, 2 or more with errors; 0 if it did not say.
	Status int `json:"status,omitempty"`
}

// Files are what a round has returned, packed. They are kept for a time of their own ([server] file_retention).
type Files struct {
	// SHA256 is the hash of the packed files, in hex, and Bytes their size; Count says how many they are.
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int64  `json:"bytes"`
	Count  int    `json:"count"`
	// To is the directory that they are in if the task names a destination (Spec.ReturnTo); then they are not packed.
	To string `json:"to,omitempty"`
}

// elsewhere stands for the hash of files that are not in Redis.
const elsewhere = "-"

// Text is the form that records have. Where the files are the task says.
func (f Files) Text() string {
	return fmt.Sprintf("%s %d %d", cmp.Or(f.SHA256, elsewhere), f.Bytes, f.Count)
}

// parseFiles reads that form, and returns the zero value for any other text.
func parseFiles(text string) Files {
	words := strings.Split(text, " ")
	hash, err := hex.DecodeString(words[0])
	if len(words) != 3 || words[0] != elsewhere && (len(hash) != sha256.Size || err != nil) {
		return Files{}
	}
	f := Files{SHA256: strings.TrimSuffix(words[0], elsewhere), Bytes: numberOf(words[1])}
	f.Count, _ = strconv.Atoi(words[2])
	if f.Bytes < 0 || f.Count < 1 {
		return Files{}
	}
	return f
}

// parseAllFiles reads several of those with blanks between them, and leaves out what is none.
func parseAllFiles(text string) (all []Files) {
	const words = 3
	for one := range slices.Chunk(strings.Split(text, " "), words) {
		if f := parseFiles(strings.Join(one, " ")); f.Count > 0 {
			all = append(all, f)
		}
	}
	return all
}

// decodeRounds reads the records of all rounds that have a field.
func decodeRounds(fields map[string]string) []Round {
	places := map[int]int{}
	rounds := make([]Round, 0, 1+min(max(0, numberOf(fields["round"])), int64(len(fields))))
	for field, text := range fields {
		n, name, ok := statemachine.ParseRoundField(field)
		if !ok {
			continue
		}
		at, known := places[n]
		if !known {
			at = len(rounds)
			places[n] = at
			rounds = append(rounds, Round{Number: n, OutputBytes: -1, ErrorBytes: -1})
		}
		rounds[at].set(name, text)
	}
	for i := range rounds {
		r := &rounds[i]
		if r.OutputBytes < 0 {
			r.OutputBytes = int64(len(r.Output))
		}
		if r.ErrorBytes < 0 {
			r.ErrorBytes = int64(len(r.errorText()))
		}
	}
	slices.SortFunc(rounds, func(a, b Round) int { return cmp.Compare(a.Number, b.Number) })
	return rounds
}

// roundFields say how the fields of a round are read.
var roundFields = map[string]func(r *Round, text string){
	"worker":         func(r *Round, text string) { r.Worker = text },
	"node":           func(r *Round, text string) { r.Node = text },
	"incarnation":    func(r *Round, text string) { r.Incarnation = numberOf(text) },
	"claim":          func(r *Round, text string) { r.Claim = text },
	"signal":         func(r *Round, text string) { r.Signal = text },
	"class":          func(r *Round, text string) { r.Class = statemachine.Class(text) },
	"retry":          func(r *Round, text string) { r.Permanent = text == statemachine.Never.Text() },
	"output":         func(r *Round, text string) { r.Output = text },
	"error":          func(r *Round, text string) { r.Error = text },
	"stderr":         func(r *Round, text string) { r.Stderr = text },
	"result":         func(r *Round, text string) { r.Result = text },
	"trace":          func(r *Round, text string) { r.Trace = text },
	"output_bytes":   func(r *Round, text string) { r.OutputBytes = numberOf(text) },
	"error_bytes":    func(r *Round, text string) { r.ErrorBytes = numberOf(text) },
	"output_sha256":  func(r *Round, text string) { r.OutputHash = text },
	"error_sha256":   func(r *Round, text string) { r.ErrorHash = text },
	"dropped":        func(r *Round, _ string) { r.Dropped = true },
	"user_time":      func(r *Round, text string) { r.UserTime = seconds(text) },
	"system_time":    func(r *Round, text string) { r.SystemTime = seconds(text) },
	"max_memory":     func(r *Round, text string) { r.MaxMemory = numberOf(text) },
	"program_sha256": func(r *Round, text string) { r.ProgramSHA256 = text },
	"files":          func(r *Round, text string) { r.Files = parseFiles(text) },
	"whole":          func(r *Round, text string) { r.Whole = parseAllFiles(text) },
	"resources":      func(r *Round, text string) { r.Resources = ParseAllotted(text) },
	"progress":       func(r *Round, text string) { r.Progress = ParseProgress(text) },
	"end":            func(r *Round, text string) { r.End = statemachine.Event(text) },
	"eta":            func(r *Round, text string) { r.ETA = ParseMoment(text) },
	"status":         func(r *Round, text string) { r.Status = max(0, int(numberOf(text))) },
	"exit_code": func(r *Round, text string) {
		if code, err := strconv.Atoi(text); err == nil {
			r.ExitCode = &code
		}
	},
}

// set reads one field. Unknown fields are left to [Task.Fields].
func (r *Round) set(name, text string) {
	if read := roundFields[name]; read != nil {
		if text != "" {
			read(r, text)
		}
		return
	}
	stamp := statemachine.State(name).Valid() ||
		name == statemachine.StampTimeout || name == statemachine.StampFailure || name == statemachine.StampBegun
	if at := ParseMoment(text); stamp && !at.IsZero() {
		if r.Stamps == nil {
			r.Stamps = map[string]time.Time{}
		}
		r.Stamps[name] = at
	}
}

func seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s > 0 && s < float64(1<<62)/float64(time.Second)) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// Begun reports whether a worker has claimed the round.
func (r *Round) Begun() bool { return !r.Stamps[string(statemachine.Running)].IsZero() }

// OutputSHA256 is the hash, in hex, of all that was written to stdout; empty if
// that is not kept.
func (r *Round) OutputSHA256() string { return r.hash(r.OutputHash, r.Output, r.OutputBytes) }

// ErrorSHA256 is the hash of what was written to stderr, or, where nothing was
// cut, of Error with what TDF itself has to say.
func (r *Round) ErrorSHA256() string { return r.hash(r.ErrorHash, r.errorText(), r.ErrorBytes) }

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
func (r *Round) errorText() string { return cmp.Or(r.Error, r.Stderr) }

// MarshalJSON adds sizes and hashes also where nothing was cut, so that none are
// recorded, and writes durations in seconds.
func (r Round) MarshalJSON() ([]byte, error) {
	type plain Round
	object := struct {
		plain

		OutputBytes  *int64  `json:"output_bytes,omitempty"`
		OutputSHA256 string  `json:"output_sha256,omitempty"`
		ErrorBytes   *int64  `json:"error_bytes,omitempty"`
		ErrorSHA256  string  `json:"error_sha256,omitempty"`
		UserTime     float64 `json:"user_time,omitempty"`
		SystemTime   float64 `json:"system_time,omitempty"`
	}{plain: plain(r), UserTime: r.UserTime.Seconds(), SystemTime: r.SystemTime.Seconds()}
	executed := !r.Stamps[string(statemachine.Executed)].IsZero() || r.Output != "" || r.Error != ""
	if r.OutputHash != "" || executed && !r.Dropped {
		object.OutputBytes, object.OutputSHA256 = &r.OutputBytes, r.OutputSHA256()
	}
	if r.ErrorHash != "" || executed && !r.Dropped {
		object.ErrorBytes, object.ErrorSHA256 = &r.ErrorBytes, r.ErrorSHA256()
	}
	return encode(object)
}

// Allotted is a part of a resource of a node.
type Allotted struct {
	Count int `json:"count"`
	// IDs says which pieces, counted from 0; nil if the node has too many of them
	// to tell them apart.
	IDs []int `json:"ids,omitempty"`
}

// allotment is one resource in the hash field "<round>:resources", as the claim script writes it: gpu:2[0 3].
var allotment = regexp.MustCompile(`(\w+):(\d+)\[([\d ]*)\]`)

// ParseAllotted reads that field, by the names of the resources; nil for nothing.
func ParseAllotted(text string) map[string]Allotted {
	if text == "" {
		return nil
	}
	var got map[string]Allotted
	for _, m := range allotment.FindAllStringSubmatch(text, -1) {
		if got == nil {
			got = map[string]Allotted{}
		}
		a := Allotted{Count: int(numberOf(m[2]))}
		for id := range strings.FieldsSeq(m[3]) {
			if n, err := strconv.Atoi(id); err == nil {
				a.IDs = append(a.IDs, n)
			}
		}
		got[m[1]] = a
	}
	return got
}

// Progress is how far a program says it has come: what it wrote as
// "progress=0.4 text" to the file that $TDF_CONTROL names. The zero value says nothing.
type Progress struct {
	// Part is from 0 to 1, nil if the program gave none.
	Part *float64 `json:"part,omitempty"`
	Text string   `json:"text,omitempty"`
}

// ParseProgress reads the hash field "<round>:progress": a number from 0 to 1,
// a text, or both.
func ParseProgress(field string) Progress {
	field = strings.TrimSpace(field)
	word, rest, _ := strings.Cut(field, " ")
	part, err := strconv.ParseFloat(word, 64)
	if err != nil || !(part >= 0 && part <= 1) {
		return Progress{Text: field}
	}
	return Progress{Part: &part, Text: strings.TrimSpace(rest)}
}

// IsZero reports whether the program said nothing.
func (p Progress) IsZero() bool { return p.Part == nil && p.Text == "" }

// String is for people: "40% text".
func (p Progress) String() string {
	if p.Part == nil {
		return p.Text
	}
	percent := strconv.Itoa(int(*p.Part*100+1e-9)) + "%"
	return strings.TrimSpace(percent + " " + p.Text)
}
