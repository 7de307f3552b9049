package archive

import "fmt"

// DamageError says what is wrong with a file of an archive. What can be read of it is read all the same.
type DamageError struct {
	Path string
	// Problem goes on after the path, Remedy says what to do.
	Problem, Remedy string
}

// Error implements error.
func (e *DamageError) Error() string { return fmt.Sprintf("%s %s; %s", e.Path, e.Problem, e.Remedy) }

// restoreRemedy is for a segment that has lost something.
const restoreRemedy = "restore it from a backup; what can be read of it is read"

// resealRemedy is for a segment without a manifest that can be relied on.
func resealRemedy(path string) string {
	return fmt.Sprintf("restore it from a backup; or, if zstd -t finds the segment whole, rename that to %s%s: "+
		"the next server or tdf-manager export that uses the directory seals it again", path, partEnd)
}
