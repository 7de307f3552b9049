package trial

import "fmt"

// Fault is a change of the tree that must turn a test red.
type Fault struct {
	// Name is what errors call it.
	Name string
	// Cells are what the table says of it.
	Cells []string
	// Suite are the tests that must notice.
	Suite Suite
	// Plant brings it into a tree, and returns what takes it back.
	Plant func(tree string) (takeBack func() error, err error)
}

// Try plants the fault, runs its tests and takes it back. It returns the name of
// the first test that failed, empty if none did. It is an error if with the fault
// the tree does not compile.
func (f *Fault) Try(tree string) (string, error) {
	takeBack, err := f.Plant(tree)
	if err != nil {
		return "", err
	}
	r := f.Suite.Try(tree)
	if err := takeBack(); err != nil {
		return "", fmt.Errorf("take back: %w", err)
	}
	if r.Unbuilt {
		return "", fmt.Errorf("with it the tree does not compile, which shows nothing:\n%s", r.Output)
	}
	return r.Found, nil
}
