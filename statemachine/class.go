package statemachine

import "slices"

// Class says what kind of thing made a round fail. The text is what Redis holds
// in the round's field "class".
type Class string

// The classes of failed rounds. Time, memory and disk are the limits of a round.
const (
	// ClassProgram is a program that said so itself: by its exit code, by a
	// signal that nobody of TDF sent, or by a Go handler's error.
	ClassProgram Class = "program"
	// ClassTime is a round that took longer than it may.
	ClassTime Class = "time"
	// ClassMemory is a round that wanted more memory than it may have.
	ClassMemory Class = "memory"
	// ClassDisk is a round that wrote more than it may.
	ClassDisk Class = "disk"
	// ClassFetch is a program that could not be fetched.
	ClassFetch Class = "fetch"
	// ClassHost is a node that could not run the program: no memory to start
	// it, a full disk, a file system that does not answer.
	ClassHost Class = "host"
	// ClassInfrastructure is TDF itself, or what it needs, going wrong.
	ClassInfrastructure Class = "infrastructure"
	// ClassShortage is a node that lacked what a worker needs to begin the round:
	// descriptors, processes, memory, room on its disk. It is never charged to the
	// task, whatever that says, and is a fault only where [ShortageCounts].
	ClassShortage Class = "shortage"
	// ClassHandler is a worker that has Go functions only, and none of the program's
	// name: it handed the round back, so this is never a failure.
	ClassHandler Class = "handler"
)

// Classes lists every class.
func Classes() []Class {
	return []Class{
		ClassProgram, ClassTime, ClassMemory, ClassDisk, ClassFetch, ClassHost, ClassInfrastructure, ClassShortage, ClassHandler,
	}
}

// Charged reports whether a failure of this class is the task's own, also for a
// task that is charged for nothing else (see [Task.ChargeProgram]). A class that
// is empty or unheard of is charged: a task must come to an end.
func (c Class) Charged() bool {
	switch c {
	case ClassFetch, ClassHost, ClassInfrastructure, ClassShortage, ClassHandler:
		return false
	default:
		return true
	}
}

// mostShortages is how often in a row a task is handed back because its node was
// short of something.
const mostShortages = 3

// ShortageCounts reports whether a round that its node could not begin, for want
// of something, is a fault; if not, the task is handed back and that costs it
// nothing. nodes are those of the rounds right before it that ended in the same
// way. Where another node lacks something too, the task may be what asks too much.
func ShortageCounts(nodes []string, node string) bool {
	return len(nodes) >= mostShortages || slices.ContainsFunc(nodes, func(other string) bool { return other != node })
}
