package shim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// link is the worker's end of the socket.
type link struct {
	conn   *net.UnixConn
	buffer []byte
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
	return &link{conn: unixConn, buffer: make([]byte, packetSize)}, far, nil
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
func (l *link) receive() (kind, []byte, error) {
	n, err := l.conn.Read(l.buffer)
	if err != nil {
		return 0, nil, err //nolint:wrapcheck // likewise
	}
	return kind(l.buffer[0]), l.buffer[1:n], nil
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

// sendRun sends a program. The descriptors are those of p.Files that are there.
func (l *link) sendRun(r *request, files [3]*os.File) error {
	body := r.encode()
	flags, fds := byte(0), make([]int, 0, maxFiles)
	if len(body) > inline {
		file, err := inMemory(body)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		flags, fds, body = flagBig, append(fds, int(file.Fd())), nil
	}
	for i, file := range files {
		if file != nil {
			flags |= flagStdin << i
			// Fd makes the descriptor blocking, as programs expect theirs.
			fds = append(fds, int(file.Fd()))
		}
	}
	packet := append(make([]byte, 0, len(body)+2), byte(kindRun), flags)
	return l.send(append(packet, body...), fds...)
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
