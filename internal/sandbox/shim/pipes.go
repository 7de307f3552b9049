package shim

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// headStart is how long a program writes into its pipes before the worker reads
	// them. What one that ends before has written, as most short ones do, comes with
	// the news of its end. One that fills a pipe waits so long, once.
	headStart = 10 * time.Millisecond
	// crowdedTries is how often the pipes are sent at the end of a round where this
	// user has too many descriptors on their way between processes.
	crowdedTries = 100
)

// pipes are what the program of a round writes into: which is read here or
// passed on to the worker. The zero value has none.
type pipes struct {
	ends    [2]int    // those that are read
	program []uintptr // the program's stdin, stdout and stderr, until it was started
	due     time.Time // when the pipes are passed on; zero without pipes
}

// open makes the pipes, and opens the null device anew: what a program does to its
// descriptors is not to show in the next round.
func (o *pipes) open(headStart time.Duration) error {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	o.program = append(o.program, uintptr(null))
	for i := range o.ends {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			o.started()
			closeAll(o.ends[:i])
			return os.NewSyscallError("pipe2", err)
		}
		o.ends[i], o.program = ends[0], append(o.program, uintptr(ends[1]))
	}
	o.due = time.Now().Add(headStart)
	return nil
}

// files are what the program gets.
func (o *pipes) files() []uintptr { return o.program }

// started closes our copies of that.
func (o *pipes) started() {
	for _, fd := range o.program {
		_ = unix.Close(int(fd))
	}
	o.program = nil
}

// close closes the pipes.
func (o *pipes) close() {
	closeAll(o.ends[:])
	o.due = time.Time{}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// passOn passes the pipes of a program that lasts on to the worker, if it is time.
func (s *shim) passOn() error {
	o := &s.round.pipes
	if o.due.IsZero() || time.Now().Before(o.due) {
		return nil
	}
	if err := s.socket.send([]byte{byte(kindPipes)}, o.ends[:]...); !crowded(err) {
		o.close()
		return err
	}
	o.due = time.Now().Add(headStart) // once more
	return nil
}

// crowded reports that descriptors cannot be sent now, for lack of room in the system.
func crowded(err error) bool {
	return errors.Is(err, unix.ETOOMANYREFS) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOBUFS)
}

// collect takes what is in the pipes of a program that has ended, unless they were
// passed on. If that is more than a packet holds, it passes them on.
func (s *shim) collect(o *pipes) (written [2]int, text []byte, err error) {
	if o.due.IsZero() {
		return written, nil, nil
	}
	defer o.close()
	left, total := [2]int{}, 0
	for i, fd := range o.ends {
		// It cannot fail for a pipe.
		left[i], _ = unix.IoctlGetInt(fd, unix.TIOCINQ)
		total += left[i]
	}
	if total > s.room {
		return written, nil, s.sendPipes(o)
	}
	text = make([]byte, total)
	at := 0
	for i, fd := range o.ends {
		written[i] = readNow(fd, text[at:at+left[i]])
		at += written[i]
	}
	return written, text[:at], nil
}

// sendPipes passes the pipes on, or tells that it cannot: without them.
func (s *shim) sendPipes(o *pipes) error {
	for range crowdedTries {
		if err := s.socket.send([]byte{byte(kindPipes)}, o.ends[:]...); !crowded(err) {
			return err
		}
		_, _ = unix.Poll(nil, int(headStart/time.Millisecond))
	}
	return s.socket.send([]byte{byte(kindPipes)})
}

// readNow fills b from a pipe, and waits for nothing, should another process that has
// opened the pipe read from it too.
func readNow(fd int, b []byte) (n int) {
	if len(b) == 0 || unix.SetNonblock(fd, true) != nil {
		return 0
	}
	for n < len(b) {
		k, err := unix.Read(fd, b[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || k == 0 {
			break
		}
		n += k
	}
	return n
}
