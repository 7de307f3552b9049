package redistest

import (
	"errors"
	"fmt"
)

// ErrNotInstalled says that there is no redis-server on this machine.
var ErrNotInstalled = errors.New(
	"redis-server is not installed: run `make test` once (it installs it), or put redis-server in PATH")

// errDown is returned for a server that was stopped or killed.
var errDown = errors.New("redis-server is not running")

// errProtocol is returned for bytes that are not RESP.
var errProtocol = errors.New("not RESP")

// ReplyError is an error that Redis answered with, for example
// "NOPERM this user has no permissions".
type ReplyError struct {
	// Text is the reply without its leading minus.
	Text string
}

// Error returns the text of the reply.
func (e *ReplyError) Error() string { return fmt.Sprintf("redis answered: %s", e.Text) }
