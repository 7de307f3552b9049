package doctor

import "slices"

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// OK is as it should be, or could not be looked at.
	OK Severity = "ok"
	// Warn works, but is unwise.
	Warn Severity = "warn"
	// Fail loses or betrays something sooner or later, or does so now.
	Fail Severity = "fail"
)

// Finding is one thing that was looked at.
type Finding struct {
	// Check names the subject, such as "persistence".
	Check string `json:"check"`
	// Severity is how bad it is.
	Severity Severity `json:"severity"`
	// Found says what there is, Remedy what to do; empty where nothing is.
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// judge looks at one subject.
type judge func(*Facts) []Finding

// judges are all subjects in the order of the report.
func judges() []judge {
	return []judge{
		judgeVersion, judgeMemory, judgePersistence, judgeDurability, judgeReplication, judgeClock, judgeLatency,
		judgeLogin, judgeNetwork, judgeSecrets, judgeServer, judgeWorkers, judgeVersions, judgeNodes, judgeHistory,
		judgeTasks, judgeDisk,
	}
}

// Examine judges the facts.
func Examine(f *Facts) []Finding {
	looks := judges()
	all := make([]Finding, 0, 2*len(looks))
	for _, look := range looks {
		all = append(all, look(f)...)
	}
	return all
}

// Sick reports whether a finding is a failure.
func Sick(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Fail })
}

func ok(check, found string) []Finding { return []Finding{{check, OK, found, ""}} }

func warn(check, found, remedy string) []Finding { return []Finding{{check, Warn, found, remedy}} }

func fail(check, found, remedy string) []Finding { return []Finding{{check, Fail, found, remedy}} }
