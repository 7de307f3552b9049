package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxName is the longest name of an entry, in bytes.
	maxName = 1024
	// maxFile is the longest file name made of a name, in bytes: with its ending
	// it stays below the 255 of the usual file systems.
	maxFile = 200
)

func checkName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("%w: %.60q: use 1 to %d bytes of UTF-8", ErrInvalidName, name, maxName)
	}
	return nil
}

// fileName percent-encodes a name. The rest of a long one is replaced by a
// hash of the whole, as file systems have no room for three times 128 bytes.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= maxFile {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	digest := "~" + hex.EncodeToString(sum[:])
	return b.String()[:maxFile-len(digest)] + digest
}

// isEntry says whether a file may hold an entry.
func isEntry(file string) bool {
	return strings.HasSuffix(file, ending) && !isTemp(file)
}

func isTemp(file string) bool { return strings.HasPrefix(file, tempPrefix) }

func plain(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
