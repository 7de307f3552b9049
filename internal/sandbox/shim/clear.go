package shim

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// chases is how often in a row the children of a subreaper are killed: one that
// forks and ends all the time is caught by speed only.
const chases = 100

// clear kills and reaps until nothing is left; false means that patience ended before.
func (s *shim) clear(patience time.Duration) bool {
	if s.reap() {
		return true // as nearly always
	}
	s.freeze(true)
	defer s.freeze(false)
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		s.kill()
		if s.reap() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		// The end of a child is the end of the pause.
		_, _ = unix.Poll(nil, int(pause/time.Millisecond))
	}
}

// kill sends SIGKILL to all that can be found now.
func (s *shim) kill() {
	if s.setup.Layer == PIDNamespace {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	if s.round != nil && !s.round.reaped {
		_ = unix.Kill(-s.round.pid, unix.SIGKILL)
	}
	for range chases {
		n := killChildren()
		if n < 0 {
			break
		}
		if n == 0 || s.reap() {
			return
		}
	}
	killDescendants(unix.Getpid())
}

// killChildren kills the children of this process, whose numbers are certainly
// theirs as long as nobody reaps them. Those of the killed are its children
// next. It returns how many there were, negative if that cannot be known.
func killChildren() int {
	self := strconv.Itoa(unix.Getpid())
	list, err := os.ReadFile("/proc/" + self + "/task/" + self + "/children")
	if err != nil {
		return -1 // a kernel without this file: the whole table is read instead
	}
	words := strings.Fields(string(list))
	for _, word := range words {
		if pid, err := strconv.Atoi(word); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return len(words)
}

// freeze stops what is in the cgroup, so that nothing forks while it is killed,
// or lets it go on. It is not cgroup.kill, which would also kill whatever is
// started in that cgroup afterwards by CLONE_INTO_CGROUP (seen with Linux 6.18).
func (s *shim) freeze(on bool) {
	if s.cgroup < 0 || s.setup.Layer == PIDNamespace {
		return
	}
	state := byte('0')
	if on {
		state = '1'
	}
	fd, err := unix.Openat(s.cgroup, "cgroup.freeze", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // an old kernel: repetition has to do
	}
	_, _ = unix.Write(fd, []byte{state})
	_ = unix.Close(fd)
}
