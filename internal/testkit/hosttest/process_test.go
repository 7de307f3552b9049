package hosttest

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// While processes are forked all the time, what was written can be executed.
func TestWriteProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := filepath.Join(dir, string(rune('a'+i)))
			for range 100 {
				WriteProgram(t, name, "#!/bin/sh\nexit 0\n", 0o755)
				if err := exec.CommandContext(t.Context(), name).Run(); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	all.Wait()
}
