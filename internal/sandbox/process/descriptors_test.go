package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// helper becomes a program that lists its descriptors, after sealing them in the
// way its role names.
func helper(role string) int {
	var err error
	switch role {
	case "unsealed":
	case "sealed":
		err = SealDescriptors()
	case "sealed one by one":
		err = sealListed()
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err == nil {
		_, err = unix.FcntlInt(3, unix.F_GETFD, 0) // sealed, not closed
	}
	if err == nil {
		err = syscall.Exec("/bin/ls", []string{"ls", "/proc/self/fd"}, nil)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func TestSealDescriptors(t *testing.T) {
	t.Parallel()
	for role, sealed := range map[string]bool{"unsealed": false, "sealed": true, "sealed one by one": true} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			inherited, err := os.Open(os.DevNull)
			must(t, err)
			defer func() { _ = inherited.Close() }()
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = []string{helperVariable + "=" + role}
			cmd.ExtraFiles = []*os.File{inherited, inherited}
			cmd.Stderr = os.Stderr
			output, err := cmd.Output()
			must(t, err)
			// 3 is the directory that ls reads if nothing else has that number.
			if (string(output) == "0\n1\n2\n3\n") != sealed {
				t.Errorf("a program has the descriptors %q", output)
			}
		})
	}
}
