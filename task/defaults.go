package task

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// longestDelay is the longest pause before a retry: a year, beyond which is a slip.
const longestDelay = 365 * 86400 * statemachine.Second

// taskDefaults are the values of a task that a queue can give, sorted by name.
// Each function returns the one text for a value, or what is wanted instead.
var taskDefaults = []struct {
	name  string
	parse func(text string) (string, error)
}{
	{"charge", oneOf("all", "program")},
	{"env", func(s string) (string, error) { return s, CheckEnv(s) }},
	{"fail_on", oneOf("any", "stderr", "exit")},
	{"fatal_exit_codes", exitCodes},
	{"labels", ParseLabels},
	{"max_fails", count},
	{"max_faults", count},
	{"max_losses", count},
	{"max_timeouts", count},
	{"priority", priority},
	{"resources", resources},
	{"retry_backoff", number(1, 1000)},
	{"retry_delay", delay},
	{"retry_exit_codes", exitCodes},
	{"retry_jitter", number(0, 1)},
	{"retry_max_delay", above0},
	{"timeout", above0},
}

// DefaultNames are the names of the values that a queue can give to tasks, which
// are names of hash fields of a task, sorted.
func DefaultNames() []string {
	names := make([]string, len(taskDefaults))
	for i, d := range taskDefaults {
		names[i] = d.name
	}
	return names
}

// ParseDefault checks a value of a task by the name of its field and returns the
// one text for it: times in seconds, lists sorted. The empty text is none of it
// for lists and names; for the others it is refused. The error names the field.
func ParseDefault(name, text string) (string, error) {
	for i := range taskDefaults { // each task that is opened has a dozen of them
		if taskDefaults[i].name == name {
			canonical, err := taskDefaults[i].parse(text)
			return canonical, named(name, err)
		}
	}
	return "", unknownKey(name, DefaultNames())
}

func oneOf(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", bad("", s, "one of "+strings.Join(words, ", "))
		}
		return s, nil
	}
}

func count(s string) (string, error) {
	l, err := ParseCount(s)
	if err != nil {
		return "", err
	}
	return l.Text(), nil
}

func priority(s string) (string, error) {
	p, ok := whole(s, MinPriority, MaxPriority)
	if !ok {
		return "", bad("", s, wantPriority)
	}
	return strconv.Itoa(p), nil
}

func resources(s string) (string, error) {
	r, err := ParseResources(s)
	return r.Text(), err
}

func above0(s string) (string, error) {
	d, err := parseSeconds(s)
	if err != nil || d <= 0 {
		return "", bad("", s, "a number of seconds above 0, or inf; write for example 90 or 5m")
	}
	return secondsText(d), nil
}

func delay(s string) (string, error) {
	d, err := parseSeconds(s)
	if err != nil || d > longestDelay {
		return "", bad("", s, "a number of seconds from 0 to 31536000; write for example 60 or 5m")
	}
	return secondsText(d), nil
}

func number(least, most float64) func(string) (string, error) {
	return func(s string) (string, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= least && f <= most) || strings.ContainsAny(s, "xX_") { // the form is false for NaN
			return "", bad("", s, "a number from "+short(least)+" to "+short(most)+"; write for example "+short((least+min(most, 2*least+1))/2))
		}
		return short(f), nil
	}
}

func short(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func exitCodes(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	var codes []int
	for item := range strings.SplitSeq(s, ",") {
		n, ok := whole(item, 0, 255)
		if !ok {
			return "", bad("", s, "a list of exit codes from 0 to 255; write for example 1,2,75")
		}
		codes = append(codes, n)
	}
	slices.Sort(codes)
	texts := make([]string, 0, len(codes))
	for _, n := range slices.Compact(codes) {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ","), nil
}
