package shim

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

// link is the worker's end of the socket.
type link struct {
	conn        *net.UnixConn
	buffer, oob []byte
}

// newLink makes a socket and returns the far end as a file.
func newLink() (*link, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	far := os.NewFile(uintptr(pair[1]), "shim")
	near := os.NewFile(uintptr(pair[0]), "shim")
	conn, err := net.FileConn(near)
	_ = near.Close() // FileConn has a copy
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("use the socket: %w", err), far.Close())
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.Join(errGarbled, conn.Close(), far.Close())
	}
	return &link{conn: unixConn, buffer: make([]byte, packetSize), oob: make([]byte, unix.CmsgSpace(4*maxFiles))}, far, nil
}

// send sends a message with descriptors. A shim that does not read must not hold
// up the worker, so it waits for room only until patience is over.
func (l *link) send(data []byte, files ...int) error {
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	err := l.conn.SetWriteDeadline(time.Now().Add(answerPatience))
	if err == nil {
		_, _, err = l.conn.WriteMsgUnix(data, oob, nil)
	}
	return err //nolint:wrapcheck // an OpError names operation and socket
}

// receive waits for the next message; the data are good until the next call.
func (l *link) receive() (packet, error) {
	n, oobn, _, _, err := l.conn.ReadMsgUnix(l.buffer, l.oob)
	if err != nil {
		return packet{}, err //nolint:wrapcheck // likewise
	}
	files, err := descriptors(l.oob[:oobn])
	return packet{kind: kind(l.buffer[0]), data: l.buffer[1:n], files: files}, err
}

// await bounds the wait for messages from now on; 0 is without bound.
func (l *link) await(patience time.Duration) {
	deadline := time.Time{}
	if patience > 0 {
		deadline = time.Now().Add(patience)
	}
	// It fails only on a closed socket, which receive finds out too.
	_ = l.conn.SetReadDeadline(deadline)
}

func (l *link) close() { _ = l.conn.Close() }

// sendRun sends a program. A request too large for a packet is a file, before the stdin if there is one.
func (l *link) sendRun(o *order) error {
	body := o.encode()
	var files []int
	if len(body) > inline {
		file, err := inMemory(body)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		body, files = nil, append(files, int(file.Fd()))
	}
	if o.stdin != 0 {
		files = append(files, o.stdin)
	}
	return l.send(append([]byte{byte(kindRun)}, body...), files...)
}

func inMemory(data []byte) (*os.File, error) {
	file, err := memoryFile("tdf-request")
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(data); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write the request: %w", err)
	}
	return file, nil
}

func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

const (
	// inline is the largest request, and the most output, that travels in a packet. Of
	// a larger request the packet carries a file in memory, of more output the pipes.
	inline = 64 << 10
	// packetSize is the largest packet, and maxFiles the most descriptors with it.
	packetSize = inline + 1024
	maxFiles   = 2
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

func (s *socket) send(data []byte, files ...int) error {
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	for {
		err := unix.Sendmsg(s.fd, data, oob, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// room is how much output fits into a packet: less than usual where the system's
// buffers of sockets are small.
func (s *socket) room() int {
	size, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return 0
	}
	return min(inline, size-2*(packetSize-inline))
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

// order takes a run message apart.
func (p *packet) order() (o order, err error) {
	body := p.data
	if len(body) == 0 && len(p.files) > 0 {
		file := os.NewFile(uintptr(p.files[0]), "request")
		p.files = p.files[1:]
		defer func() { _ = file.Close() }() // nothing is written through it
		if body, err = io.ReadAll(io.NewSectionReader(file, 0, math.MaxInt64)); err != nil {
			return o, fmt.Errorf("read the request: %w", err)
		}
	}
	if o, err = decodeOrder(body); err != nil || o.stdin == 0 {
		return o, err
	}
	if len(p.files) != 1 { // this process, or all of its user, has no room for more
		return o, &process.StartError{Reason: process.ReasonResources, Err: fmt.Errorf("take over stdin: %w", syscall.EMFILE)}
	}
	o.stdin = p.files[0]
	return o, nil
}
