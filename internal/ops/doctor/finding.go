package doctor

import "slices"

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// OK is as it should be.
	OK Severity = "ok"
	// Skip could not be looked at, or not with this login.
	Skip Severity = "skip"
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
		judgeTasks, judgePlans, judgeRetention, judgeDisk,
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

func skip(check, found string) []Finding { return []Finding{{check, Skip, found, ""}} }

// unknown is the finding of what Redis does not answer: an access list forbids it, or
// this kind of Redis does not have it.
func unknown(check, what, command string) []Finding {
	return skip(check, what+" not checked: Redis does not answer "+command+" to this user")
}

func warn(check, found, remedy string) []Finding { return []Finding{{check, Warn, found, remedy}} }

func fail(check, found, remedy string) []Finding { return []Finding{{check, Fail, found, remedy}} }
