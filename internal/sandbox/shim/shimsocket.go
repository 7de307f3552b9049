package shim

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// inline is the largest request that travels in a packet; of a larger one the
	// packet carries a file in memory.
	inline = 64 << 10
	// packetSize is the largest packet, and maxFiles the most descriptors with it.
	packetSize = inline + 64
	maxFiles   = 4
)

// Flags of a run message, its second byte.
const (
	flagStdin byte = 1 << iota
	flagStdout
	flagStderr
	flagBig // the request is in the first descriptor
)

// packet is a message as the shim received it; it owns the files.
type packet struct {
	kind  kind
	data  []byte
	files []int
}

func (p *packet) close() {
	for _, fd := range p.files {
		_ = unix.Close(fd)
	}
	p.files = nil
}

// socket is the shim's end.
type socket struct {
	fd     int
	buffer []byte
	oob    []byte
}

func newSocket(fd int) *socket {
	return &socket{fd: fd, buffer: make([]byte, packetSize), oob: make([]byte, unix.CmsgSpace(4*maxFiles))}
}

// receive takes the next packet; io.EOF if the worker is gone. The data are good
// until the next call.
func (s *socket) receive() (packet, error) {
	n, oobn, err := s.recvmsg()
	if err != nil {
		return packet{}, err
	}
	files, err := descriptors(s.oob[:oobn])
	if err != nil {
		return packet{}, err
	}
	if n == 0 {
		return packet{}, io.EOF
	}
	return packet{kind: kind(s.buffer[0]), data: s.buffer[1:n], files: files}, nil
}

func (s *socket) recvmsg() (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(s.fd, s.buffer, s.oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			return n, oobn, os.NewSyscallError("recvmsg", err)
		}
	}
}

func (s *socket) send(data []byte) error {
	for {
		err := unix.Send(s.fd, data, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("send", err)
		}
	}
}

func descriptors(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("descriptors: %w", err)
	}
	var files []int
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("descriptors: %w", err)
		}
		files = append(files, fds...)
	}
	return files, nil
}

// run takes a run message apart: the request and the program's descriptors, -1
// where none was given.
func (p *packet) run() (request, [3]int, error) {
	std := [3]int{-1, -1, -1}
	if len(p.data) == 0 {
		return request{}, std, errGarbled
	}
	flags, body, files := p.data[0], p.data[1:], p.files
	if flags&flagBig != 0 {
		if len(files) == 0 {
			return request{}, std, errGarbled
		}
		var err error
		if body, err = contents(files[0]); err != nil {
			return request{}, std, err
		}
		files = files[1:]
	}
	for i, flag := range []byte{flagStdin, flagStdout, flagStderr} {
		if flags&flag == 0 {
			continue
		}
		if len(files) == 0 {
			return request{}, std, errGarbled
		}
		std[i], files = files[0], files[1:]
	}
	r, err := decodeRequest(body)
	return r, std, err
}

// contents reads a file in memory from its beginning.
func contents(fd int) ([]byte, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	data := make([]byte, stat.Size)
	for done := 0; done < len(data); {
		n, err := unix.Pread(fd, data[done:], int64(done))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, os.NewSyscallError("pread", err)
		}
		if n == 0 && err == nil {
			return nil, fmt.Errorf("read %d of %d bytes: %w", done, len(data), io.ErrUnexpectedEOF)
		}
		done += max(n, 0)
	}
	return data, nil
}
