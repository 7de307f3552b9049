package worker

import (
	"strings"

	"github.com/tdf-go/tdf/internal/sandbox/shim"
)

// identity names this worker so that a successor on the same host can tell
// whether its process still lives; token tells several workers of one process
// apart.
func identity(token string) string { return shim.ThisProcess() + " " + token }

// dead reports whether the process of that identity certainly has ended. What is
// unclear counts as alive.
func dead(identity string) bool {
	end := strings.LastIndexByte(identity, ' ')
	return end > 0 && shim.Gone(identity[:end])
}
