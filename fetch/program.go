package fetch

import (
	"fmt"
	"io/fs"
	"regexp"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// runFile is the file of a program that is executed.
const runFile = "run.sh"

var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidProgram says whether name can be a program's name, which is also the
// name of its directory: letters, digits, '.', '_' and '-', first a letter or
// digit, at most 128. The error matches [ErrInvalidProgram].
func ValidProgram(name string) error {
	if programName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%w: '%s': use 1 to 128 letters, digits, '.', '_' and '-', starting with a letter or digit",
		ErrInvalidProgram, printable(name))
}

// runnable checks run.sh of a program in tree, following links inside it.
func runnable(tree fs.FS, program string) error {
	fi, err := fs.Stat(tree, runFile)
	switch {
	case err != nil:
		return fmt.Errorf("%w: program './%s/%s' does not exist", ErrNotRunnable, program, runFile)
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%w: program './%s/%s' is not a regular file", ErrNotRunnable, program, runFile)
	case fi.Mode()&0o111 == 0:
		return fmt.Errorf("%w: program './%s/%s' is not executable (mode %#o): chmod +x it, before packing if it is in an archive",
			ErrNotRunnable, program, runFile, fi.Mode().Perm())
	}
	return nil
}

// printable makes text from elsewhere fit for one line of a log.
func printable(s string) string { return clean.Line(s, 300) }
