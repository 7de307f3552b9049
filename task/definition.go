package task

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// Definition is a task to open, complete and valid: the text of each field, as
// its record gets it. Make one with [Define] or [Redefine].
type Definition struct { //nolint:recvcheck // Set changes a definition, Map and MarshalJSON only read it
	texts []string // by the places of the table
	// Needs are the tasks it waits for; only in a plan.
	Needs []Need
	// Grows says that steps of the plan are for the lines of its result.
	Grows bool
	// RetryOf is the ended task that this one repeats; ReplayOf and ReplayRound are
	// the round whose output this one is compared with. 0 for none.
	RetryOf, ReplayOf int64
	ReplayRound       int
}

// Defaults are texts of fields by name, as [Parse] returns them, for what the
// opener of a task leaves out.
type Defaults map[string]string

// MarshalJSON writes numbers as such, but for inf.
func (d Defaults) MarshalJSON() ([]byte, error) {
	object := make(map[string]any, len(d))
	for name, text := range d {
		object[name] = text
		if at, known := places[name]; known && table[at].number && finite(text) {
			object[name] = json.Number(text)
		}
	}
	return json.Marshal(object) //nolint:wrapcheck // it cannot fail
}

// finite reports whether the text of a number is one in JSON too.
func finite(text string) bool {
	return strings.Trim(text, "-.0123456789eE+") == "" && json.Valid([]byte(text))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Defaults) UnmarshalJSON(text []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("defaults of a queue: %w", err)
	}
	*d = make(Defaults, len(object))
	for name, raw := range object {
		f, err := find(name)
		if err != nil {
			return err
		}
		if (*d)[name], err = f.fromJSON(raw); err != nil {
			return named(name, err)
		}
	}
	return nil
}

// Define completes a spec by the first of some defaults that has a field, and
// else by those of TDF. A StartIn or EndIn above 0 has no text: see [Spec.From]. The
// error is a [*statemachine.FieldError].
func Define(spec *Spec, defaults ...Defaults) (Definition, error) {
	return complete(spec, otherwise(defaults))
}

// A Definer completes specs as [Define] does, many of them by the same defaults.
type Definer struct{ texts []string }

// NewDefiner makes a Definer of the defaults that [Define] takes.
func NewDefiner(defaults ...Defaults) Definer { return Definer{texts: otherwise(defaults)} }

// Define completes a spec; see the function [Define].
func (d Definer) Define(spec *Spec) (Definition, error) {
	return complete(spec, slices.Clone(d.texts))
}

// complete puts what a spec says into the texts of fields that nobody gave.
func complete(spec *Spec, texts []string) (Definition, error) {
	err := spec.runnable()
	if err == nil {
		err = spec.checkTimes()
	}
	if err != nil {
		return Definition{}, err
	}
	d := Definition{texts: texts, Needs: spec.Needs}
	for i := range table {
		f := &table[i]
		text, said := f.get(spec)
		if !said {
			continue
		}
		var err error
		if d.texts[i], err = f.parse(text); err != nil {
			return Definition{}, named(f.Name, err)
		}
	}
	if strings.HasPrefix(d.Text("source"), CommandPrefix) {
		err = d.completeCommand(spec.FailOn != "")
	}
	if err == nil && spec.MemoryMax > 0 {
		err = d.demand(LimitLabel("memory_max"))
	}
	if err == nil && spec.PidsMax > 0 {
		err = d.demand(LimitLabel("pids_max"))
	}
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return Definition{}, spec.blame(err, &d)
	}
	return d, nil
}

// LimitLabel is what a worker offers that can keep the limit memory_max or pids_max of a task, and what a task with one asks for.
func LimitLabel(limit string) string { return limit + "=on" }

// demand adds a label that a worker must offer.
func (d *Definition) demand(label string) error {
	labels, err := ParseLabels(strings.TrimPrefix(d.Text("labels")+","+label, ","))
	d.texts[places["labels"]] = labels
	return err
}

// CommandsLabel is what a worker offers that runs commands (see [CommandPrefix]), and what a
// task with one asks for.
const CommandsLabel = "commands=on"

// completeCommand gives a task that runs a command what nobody else gives it: a name for
// people, workers that run commands, and failure by exit status, since many commands chat on
// stderr.
func (d *Definition) completeCommand(failOnSaid bool) error {
	source := d.Text("source")
	src, err := ParseSource(source)
	if err != nil {
		return bad("source", source, wantCommand)
	}
	set := func(name, text string) { d.texts[places[name]] = text }
	if d.Text("program") == "" {
		if err := checkProgram(src.File); err != nil {
			return err
		}
		set("program", src.File)
	}
	if !failOnSaid && d.Text("fail_on") == FailOnAny {
		set("fail_on", FailOnExit)
	}
	if d.Text("workdir") == WorkdirShared {
		return bad("workdir", WorkdirShared, "private or worker: the rounds of a command share no directory")
	}
	return d.demand(CommandsLabel)
}

// runnable refuses words that no program can be called with. Templates of tasks
// have one in the place of a line.
func (s *Spec) runnable() error {
	if strings.ContainsRune(s.Input, 0) {
		return bad("input", s.Input, "a text without NUL characters")
	}
	for _, word := range s.Argv {
		if strings.ContainsRune(word, 0) {
			return bad("argv", word, wantWord)
		}
	}
	return nil
}

// otherwise are the texts of fields that nobody gave for a task, by the places of the table.
func otherwise(defaults []Defaults) []string {
	texts := make([]string, len(table))
	for i := range table {
		texts[i] = table[i].Default
	}
	for _, given := range slices.Backward(defaults) {
		for name, text := range given {
			if at, known := places[name]; known {
				texts[at] = text
			}
		}
	}
	return texts
}

// Redefine is the definition of a task that was opened before, by the fields of
// its record. Its key, which belongs to that task, and what held it are left
// out. The error is a [*statemachine.FieldError].
func Redefine(fields map[string]string) (Definition, error) {
	of := make(map[string]string, len(fields))
	for _, name := range DefinitionNames() {
		of[name] = fields[name]
	}
	return definition(of)
}

// DefinitionNames are the names of the fields that [Redefine] reads.
func DefinitionNames() []string {
	return names(func(f *Field) bool { return f.Name != "key" && f.Name != "key_until" && f.Name != "hold" })
}

// definition is that with the given texts, and else the defaults of TDF.
func definition(fields map[string]string) (Definition, error) {
	d := Definition{texts: make([]string, len(table))}
	for i := range table {
		var err error
		if d.texts[i], err = table[i].given(fields[table[i].Name]); err != nil {
			return Definition{}, err
		}
	}
	return d, d.check()
}

// given is the one form of a text, the default for the empty one.
func (f *Field) given(text string) (string, error) {
	if text == "" {
		return f.Default, nil
	}
	canonical, err := f.parse(text)
	return canonical, named(f.Name, err)
}

// check looks at what a field alone cannot say.
func (d *Definition) check() error {
	if d.Text("program") == "" {
		return checkProgram("")
	}
	start, end := d.Text("start_after"), d.Text("end_before")
	from, _ := statemachine.ParseTime(start)
	if to, _ := statemachine.ParseTime(end); from > to {
		return bad("start_after", start, "earlier than end_before = "+end)
	}
	if d.Text("key_until") == KeyUntilEnd && d.Text("key") == "" {
		return bad("key", "", "a name, which key_until = end needs")
	}
	if variables := d.Text("variables"); variables != "" {
		return checkUnmasked(variables)
	}
	return nil
}

// blame names the field that the opener has set, where an error is about two of
// which the other is a default.
func (s *Spec) blame(err error, d *Definition) error {
	if s.StartAfter.IsZero() && !s.EndBefore.IsZero() && fieldOf(err) == "start_after" {
		return bad("end_before", d.Text("end_before"), "later than start_after = "+d.Text("start_after"))
	}
	return err
}

// Text is the text of a field by its name. It panics on a name that no field has.
func (d *Definition) Text(name string) string {
	at, known := places[name]
	if !known {
		panic("task: no field " + name)
	}
	if d.texts == nil {
		return ""
	}
	return d.texts[at]
}

// Set changes a field by its name, with the empty text to its default. The error
// is a [*statemachine.FieldError]; then nothing changes.
func (d *Definition) Set(name, text string) error {
	f, err := find(name)
	if err != nil {
		return err
	}
	canonical, err := f.given(text)
	if err != nil {
		return err
	}
	was := d.texts
	if d.texts = slices.Clone(was); was == nil { // definitions are passed on by value
		d.texts = otherwise(nil)
	}
	d.texts[places[name]] = canonical
	if err := d.check(); err != nil {
		d.texts = was
		return err
	}
	return nil
}

// words returns what is in the JSON array of the field argv; nil if there is none.
func words(text string) []string {
	var argv []string
	_ = json.Unmarshal([]byte(text), &argv) // was checked; nil for the empty text
	return argv
}

// Map returns the definition with f applied to its input and to each word of its argv.
func (d Definition) Map(f func(string) string) (Definition, error) {
	if argv := words(d.Text("argv")); argv != nil {
		for i, word := range argv {
			argv[i] = f(word)
		}
		err := d.Set("argv", listText(argv))
		return d, err
	}
	err := d.Set("input", f(d.Text("input")))
	return d, err
}

// Bucket is where the task waits once it is ready.
func (d *Definition) Bucket() Bucket {
	priority, _ := strconv.Atoi(d.Text("priority")) // was checked
	b := Bucket{
		Queue: d.Text("queue"), Env: d.Text("env"), Labels: d.Text("labels"), Resources: d.Text("resources"), Class: d.Text("class"),
		Priority: priority,
	}
	if b.Queue == DefaultQueue {
		b.Queue = ""
	}
	return b
}

// Values are the fields of a new record, each followed by its value: those of
// the original always, others as far as they are not at their defaults.
func (d *Definition) Values() []string {
	values := make([]string, 0, 32)
	for i := range table {
		f := &table[i]
		if text := d.texts[i]; f.always || text != f.Default {
			values = append(values, f.Name, text)
		}
	}
	return values
}

// Shuffle adds up to a second to the start, so that tasks opened with the same
// start run in mixed order, but not beyond the end.
func (d *Definition) Shuffle() {
	from, _ := statemachine.ParseTime(d.Text("start_after")) // was checked, as below
	end, _ := statemachine.ParseTime(d.Text("end_before"))
	if room := min(int64(statemachine.Second), int64(end.Sub(from))); room > 0 {
		d.texts = slices.Clone(d.texts)
		d.texts[places["start_after"]] = (from + statemachine.Time(rand.Int64N(room))).Text()
	}
}

// MarshalJSON writes the fields that are not at their defaults, by their names, as texts.
func (d Definition) MarshalJSON() ([]byte, error) {
	fields := map[string]string{}
	for i := range table {
		if text := d.texts[i]; text != table[i].Default {
			fields[table[i].Name] = text
		}
	}
	if d.Grows {
		fields["grows"] = "1"
	}
	return json.Marshal(fields) //nolint:wrapcheck // it cannot fail
}

// UnmarshalJSON reads what MarshalJSON wrote. A field that is not known may be
// one of a newer release: that is an error.
func (d *Definition) UnmarshalJSON(text []byte) error {
	var fields map[string]string
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("definition of a task: %w", err)
	}
	grows := fields["grows"] == "1"
	delete(fields, "grows")
	for name := range fields {
		if _, err := find(name); err != nil {
			return err
		}
	}
	read, err := definition(fields)
	read.Grows = grows
	*d = read
	return err
}
