package shim

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tokenVariable marks programs in their environment, so that they are found even
// when nothing else is known of them. Its value is origin.process.incarnation.slot.
const tokenVariable = "TDF_SHIM=" //nolint:gosec // no secret

// originOf stands for a worker's name, which may hold anything, at this place.
// Another worker of that name may live at another place of the host: another PID
// namespace, where process numbers mean other processes, or another network, where
// the address of its Redis is another's.
func originOf(name string) string {
	network, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		network = ThisProcess() // like no other
	}
	sum := sha256.Sum256([]byte(name + "\x00" + place() + "\x00" + network))
	return hex.EncodeToString(sum[:8])
}

// newMark marks one incarnation of a worker: the process, and a word of its own,
// as a process may have several workers.
func newMark() string {
	pid := os.Getpid()
	_, start := lookAt(pid)
	return fmt.Sprintf("%d-%s.%s", pid, start, strings.ToLower(rand.Text()[:12]))
}

// left reports whether a token, or the beginning of one, is that of an earlier
// incarnation of this worker, whose process is gone.
func (c *Container) left(token string) bool {
	words := strings.SplitN(token, ".", 3)
	if len(words) < 3 || words[0] != c.origin {
		return false
	}
	number, start, _ := strings.Cut(words[1], "-")
	pid, err := strconv.Atoi(number)
	return err == nil && gone(pid, start)
}

// sweep kills the processes whose environment holds an entry that match accepts,
// again and again until there are none.
func sweep(match func(token string) bool, patience time.Duration) (killed int, err error) {
	deadline := time.Now().Add(patience)
	seen := make(map[int]bool)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left := 0
		for _, pid := range processes() {
			marked := func() bool { return match(tokenOf(pid)) }
			if pid != os.Getpid() && marked() && killChecked(pid, marked) {
				seen[pid] = true
				left++
			}
		}
		if left == 0 {
			return len(seen), nil
		}
		if time.Now().After(deadline) {
			return len(seen), fmt.Errorf("%d processes of a round: %w", left, ErrUnkillable)
		}
		<-time.After(pause)
	}
}

// tokenOf reads a process' token: of a program from its environment, of a shim
// from its arguments; "" if there is none or it may not be read.
func tokenOf(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return ""
	}
	if rest, ok := bytes.CutPrefix(line, []byte(shimName+"\x00")); ok {
		token, _, _ := bytes.Cut(rest, []byte{0})
		return string(token)
	}
	environ, err := os.ReadFile(dir + "/environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if token, ok := bytes.CutPrefix(entry, []byte(tokenVariable)); ok {
			return string(token)
		}
	}
	return ""
}
