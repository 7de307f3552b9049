package cgroup

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// maxName keeps a directory's name below the 255 bytes of the kernel.
const maxName = 200

// treeName is the directory of a worker; different for different names.
func treeName(worker string) string {
	var b strings.Builder
	for i := range len(worker) {
		if c := worker[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	encoded := b.String()
	if len(encoded) > maxName {
		// "%~" is no code of a byte, so no short name looks like this.
		encoded = fmt.Sprintf("%s%%~%x", encoded[:maxName-34], sha256.Sum256([]byte(worker)))[:maxName]
	}
	return "tdf-" + encoded
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// slotName is the directory of a slot. Two workers of one name may live on a
// host, at two sites, so it also says whose it is.
func (t *Tree) slotName(n int) string { return fmt.Sprintf("slot-%d.%s", n, t.mark) }
