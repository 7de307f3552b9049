package cli

import (
	"os"
	"runtime"
)

// UseProcessors says on how many processors at a time the code of a daemon itself is run: at least 1, at most as many as
// there are. Programs are not concerned, they are processes of their own. On more processors than a daemon has work for, the
// runtime of Go spends much of its time on putting them to sleep and waking them, and takes it from the programs. Who sets
// GOMAXPROCS in the environment decides himself.
func UseProcessors(n int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(max(n, 1), runtime.GOMAXPROCS(0)))
	}
}
