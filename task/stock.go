package task

import (
	"regexp"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Errand is what is asked of workers about the versions of programs that they keep: to list them, or to remove them.
type Errand struct {
	// Versions are those meant: sum for all of a program, sum@3f9a for those of it whose hash begins so.
	// None means all there are.
	Versions []string `json:"versions,omitempty"`
	// UnusedFor leaves out what was used within that time, and what was put there by hand.
	UnusedFor Seconds `json:"unused_for,omitempty"`
	// Remove removes them; it needs Versions or UnusedFor. What a slot holds stays, and what was put there by hand.
	Remove bool `json:"remove,omitempty"`
}

// Stock is what a worker answers to an [Errand].
type Stock struct {
	Worker string `json:"worker"`
	Node   string `json:"node"`
	// Silent says that the worker has not answered in time: nothing else is known then.
	Silent bool `json:"silent"`
	// Dir is the worker's program directory, where versions are Dir/PROGRAM/SHA256. Place is the same for workers that
	// share it on one host.
	Dir   string `json:"dir"`
	Place string `json:"place"`
	// Versions are those meant, the largest first, at most 1000 and 1 MiB of JSON; More is how many others there are.
	Versions []StoredVersion `json:"versions"`
	More     int             `json:"more"`
	// Error says why the worker could not do it; empty if it has.
	Error string `json:"error"`
}

// StoredVersion is one version of a program in the directory of a worker.
type StoredVersion struct {
	Program string `json:"program"`
	// SHA256 is empty for a program that was put there by hand.
	SHA256 string `json:"sha256"`
	// Bytes is the room that it takes on the disk.
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
	// Source is where it came from, without tokens.
	Source string `json:"source,omitempty"`
	// Installed and Used, when a round had it last, are moments of Redis' clock; zero if that is not known, and Installed also if the version
	// is damaged: it is installed again before it runs.
	Installed time.Time `json:"installed,omitzero"`
	Used      time.Time `json:"used,omitzero"`
	// Rounds is how many rounds of the worker run it now. Slots is how many of its slots hold it: those, and those
	// that have run it last.
	Rounds int `json:"rounds"`
	Slots  int `json:"slots"`
	// Removed says that it is gone, Kept why it is not although that was asked for.
	Removed bool   `json:"removed,omitempty"`
	Kept    string `json:"kept,omitempty"`
}

// hashPart is how the hash of a version begins.
var hashPart = regexp.MustCompile("^[0-9a-f]{1,64}$")

// Check returns a *statemachine.FieldError for what no worker would do.
func (e *Errand) Check() error {
	for _, v := range e.Versions {
		program, hash, pinned := strings.Cut(v, "@")
		if ValidProgram(program) != nil || pinned && !hashPart.MatchString(hash) {
			return &statemachine.FieldError{Field: "version", Value: v,
				Want: "the name of a program, or NAME@HEX with the first digits of its hash, in small letters"}
		}
	}
	if e.Remove && len(e.Versions) == 0 && e.UnusedFor <= 0 {
		return &statemachine.FieldError{Field: "versions", Value: "", Want: "those to remove, or a time for which they were not used"}
	}
	return nil
}

// Means reports whether a version is one of Versions; an empty hash is that of a program put there by hand.
func (e *Errand) Means(program, sha256 string) bool {
	for _, v := range e.Versions {
		if name, hash, _ := strings.Cut(v, "@"); name == program && strings.HasPrefix(sha256, hash) {
			return true
		}
	}
	return len(e.Versions) == 0
}
