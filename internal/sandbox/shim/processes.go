package shim

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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
	_, _, start := lookAt(pid)
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

// killDescendants sends SIGKILL to all descendants of root that can be found now,
// children before their parents, and returns how many those were. One that is
// forked meanwhile, or falls to another parent, is found by the next call.
func killDescendants(root int) int {
	tree := parents()
	depths := make(map[int]int)
	for pid := range tree {
		if depth := depth(tree, pid, root); depth > 0 {
			depths[pid] = depth
		}
	}
	killed := 0
	for _, pid := range slices.SortedFunc(maps.Keys(depths), func(a, b int) int { return depths[b] - depths[a] }) {
		if killChecked(pid, func() bool { return isChildWithin(tree, pid, root) }) {
			killed++
		}
	}
	return killed
}

// parents maps every process to its parent; zombies are left out.
func parents() map[int]int {
	tree := make(map[int]int)
	for _, pid := range processes() {
		if parent := parentOf(pid); parent > 0 {
			tree[pid] = parent
		}
	}
	return tree
}

// depth counts the steps from pid up to root, 0 if pid is no descendant. A table
// that changed while it was read could hold a circle, so the way is bounded.
func depth(tree map[int]int, pid, root int) int {
	for n := range len(tree) {
		parent, ok := tree[pid]
		switch {
		case !ok:
			return 0
		case parent == root:
			return n + 1
		}
		pid = parent
	}
	return 0
}

// isChildWithin looks again whether pid still has a parent in the tree of root.
func isChildWithin(tree map[int]int, pid, root int) bool {
	parent := parentOf(pid)
	return parent == root || parent > 0 && depth(tree, parent, root) > 0
}

// killChecked sends SIGKILL to pid if check holds while its number is pinned.
func killChecked(pid int, check func() bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		return check() && unix.Kill(pid, unix.SIGKILL) == nil
	}
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return check() && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

// processes lists the numbers under /proc.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf reads the parent of a live process; 0 for a zombie or if pid is gone.
func parentOf(pid int) int {
	state, parent, _ := lookAt(pid)
	if state == "Z" || state == "X" {
		return 0
	}
	number, _ := strconv.Atoi(parent)
	return number
}

// ThisProcess names this process so that another one of the host can tell whether
// it still lives: boot, PID namespace, process id and start time, with blanks
// between them.
func ThisProcess() string {
	pid := os.Getpid()
	_, _, start := lookAt(pid)
	return place() + " " + strconv.Itoa(pid) + " " + start
}

// Gone reports whether the process that ThisProcess has named has certainly ended:
// it lived in this boot and PID namespace, and its number is free or another's.
// What is unclear counts as alive.
func Gone(process string) bool {
	words := strings.Fields(process)
	if len(words) != 4 || words[0] == unknown || place() != words[0]+" "+words[1] {
		return false
	}
	pid, err := strconv.Atoi(words[2])
	return err == nil && gone(pid, words[3])
}

// gone reports whether no process of this place has that number and start.
func gone(pid int, start string) bool {
	state, _, since := lookAt(pid)
	return state == "" || state == "Z" || state == "X" || since != "" && since != start
}

// unknown is a boot that cannot be known.
const unknown = "-"

// place is boot and PID namespace. Where they cannot be known, or /proc is that of
// another namespace, it is like no other process'.
func place() string {
	self := strconv.Itoa(os.Getpid())
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	shown, err3 := os.Readlink("/proc/self")
	if err != nil || err2 != nil || err3 != nil || shown != self {
		return unknown + " " + self
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// lookAt returns the state of a process, its parent, and its start in ticks since the
// boot. All are empty for a process that has gone; a hidden one has the state "?" alone.
func lookAt(pid int) (state, parent, start string) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return "", "", ""
	}
	// The command name before the last parenthesis may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "?", "", ""
	}
	return fields[0], fields[1], fields[19]
}
