package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sweepPatience bounds the wait for killed members of a group to be gone.
	sweepPatience = time.Second
	// sweepTrust is how long a group may look alive before /proc is asked
	// whether only zombies are left, as where PID 1 does not reap.
	sweepTrust = 20 * time.Millisecond
)

// waitEnded waits until pid has ended and leaves it unreaped.
func waitEnded(pid int) error {
	err := retryInterrupted(func() error {
		return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	})
	if err != nil {
		return fmt.Errorf("process: wait for %d: %w", pid, err)
	}
	return nil
}

// reap takes the exit status of pid, which has ended.
func reap(pid int) (status syscall.WaitStatus, usage syscall.Rusage, err error) {
	err = retryInterrupted(func() error {
		_, err := syscall.Wait4(pid, &status, 0, &usage)
		return os.NewSyscallError("wait4", err)
	})
	if err != nil {
		err = fmt.Errorf("process: reap %d: %w", pid, err)
	}
	return status, usage, err
}

// awaitGone waits until no live process is left in the killed group pgid, and
// reports whether that came true in time. Signal 0 harms nobody, should the
// number already belong to someone else.
func awaitGone(pgid int) bool {
	begin := time.Now()
	patience := time.NewTimer(sweepPatience)
	defer patience.Stop()
	for pause := time.Millisecond; !isGone(pgid, begin); pause = min(2*pause, sweepTrust) {
		select {
		case <-patience.C:
			return isGone(pgid, begin)
		case <-time.After(pause):
		}
	}
	return true
}

// isGone looks once at the group that was killed at begin or before.
func isGone(pgid int, begin time.Time) bool {
	if errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
		return true
	}
	return time.Since(begin) > sweepTrust && !hasLiveMember(pgid)
}

// hasLiveMember looks through /proc for a member of pgid that is no zombie.
// Without a readable /proc it says yes.
func hasLiveMember(pgid int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		state, group := processState(entry.Name())
		if group == pgid && state != "Z" && state != "X" {
			return true
		}
	}
	return false
}

// processState reads state letter and process group; group 0 if pid is gone.
func processState(pid string) (state string, group int) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", 0
	}
	// The command name before the last parenthesis may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 3 {
		return "", 0
	}
	group, err = strconv.Atoi(fields[2])
	if err != nil {
		return "", 0
	}
	return fields[0], group
}
