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
	// crowdedPause is how long it takes until descriptors are sent again that this
	// user's others on their way leave no room for, and crowdedTries how often that
	// is tried at the end of a round.
	crowdedPause = 10 * time.Millisecond
	crowdedTries = 100
)

// pipes are what the program of a round writes into. They are read here, or passed on
// to the worker. The zero value has none.
type pipes struct {
	// all are the descriptors of a round: stdin of the program, and
	// for stdout and for stderr the end that is read and that of the program. The
	// program's are closed with the others: one call is enough for all.
	all []int
	due time.Time // when they are passed on
}

// open makes the pipes, and takes stdin or, where that is 0, opens the null device anew: what a program does to its
// descriptors is not to show in the next round.
func (p *pipes) open(headStart time.Duration, stdin int) (err error) {
	var in int
	if stdin == 0 {
		in, err = unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	} else {
		in, err = unix.FcntlInt(uintptr(stdin), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	p.all = append(make([]int, 0, 5), in)
	for range 2 {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			p.close()
			return os.NewSyscallError("pipe2", err)
		}
		p.all = append(p.all, ends[:]...)
	}
	p.due = time.Now().Add(headStart)
	return nil
}

// program are the program's stdin, stdout and stderr.
func (p *pipes) program() []uintptr {
	return []uintptr{uintptr(p.all[0]), uintptr(p.all[2]), uintptr(p.all[4])}
}

// read are the ends to read what it writes to stdout and stderr.
func (p *pipes) read() [2]int { return [2]int{p.all[1], p.all[3]} }

// close closes all there are, in one call where they are neighbours, as they nearly
// always are.
func (p *pipes) close() {
	all := p.all
	p.all = nil
	if n := len(all); n > 1 && all[n-1]-all[0] == n-1 && unix.CloseRange(uint(all[0]), uint(all[n-1]), 0) == nil {
		return // n numbers that differ, and all within n: none of another's is among them
	}
	for _, fd := range all {
		_ = unix.Close(fd)
	}
}

// passOn passes the pipes of a program that lasts on to the worker, if it is time.
func (s *shim) passOn() error {
	p := &s.round.pipes
	if p.all == nil || time.Now().Before(p.due) {
		return nil
	}
	err := s.sendPipes(p)
	if crowded(err) {
		p.due = time.Now().Add(crowdedPause)
		return nil
	}
	p.close()
	return err
}

func (s *shim) sendPipes(p *pipes) error {
	read := p.read()
	return s.socket.send([]byte{byte(kindPipes)}, read[:]...)
}

// crowded reports that descriptors cannot be sent now, for lack of room in the system.
func crowded(err error) bool {
	return errors.Is(err, unix.ETOOMANYREFS) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOBUFS)
}

// collect takes what is in the pipes of a program that has ended, unless they were
// passed on. If that is more than a packet holds, it passes them on.
func (s *shim) collect(p *pipes) (written [2]int, text []byte, err error) {
	if p.all == nil {
		return written, nil, nil
	}
	defer p.close()
	left, total := [2]int{}, 0
	for i, fd := range p.read() {
		// It cannot fail for a pipe.
		left[i], _ = unix.IoctlGetInt(fd, unix.TIOCINQ)
		total += left[i]
	}
	if total > s.room {
		return written, nil, s.passOnAtLast(p)
	}
	text = make([]byte, total)
	at := 0
	for i, fd := range p.read() {
		written[i] = readNow(fd, text[at:at+left[i]])
		at += written[i]
	}
	return written, text[:at], nil
}

// passOnAtLast passes the pipes on, or tells that it cannot: without them.
func (s *shim) passOnAtLast(p *pipes) error {
	for range crowdedTries {
		if err := s.sendPipes(p); !crowded(err) {
			return err
		}
		_, _ = unix.Poll(nil, int(crowdedPause/time.Millisecond))
	}
	return s.socket.send([]byte{byte(kindPipes)})
}

// readNow fills b from a pipe, and waits for nothing, should another process that has
// opened the pipe read from it too.
func readNow(fd int, b []byte) (n int) {
	if len(b) == 0 {
		return 0
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK); err != nil {
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
