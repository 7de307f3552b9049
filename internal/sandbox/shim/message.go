package shim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/process"
)

// A message is one packet: a letter for its kind, then what belongs to it.
type kind byte

// To the shim.
const (
	kindSetup kind = 'C' // setup as JSON
	kindRun   kind = 'R' // a command
	kindStop  kind = 'S' // grace in nanoseconds
	kindKill  kind = 'K'
	kindLease kind = 'L' // Instant
)

// From the shim.
const (
	kindReady  kind = 'r' // readiness as JSON
	kindAnswer kind = 'a' // the kind of the stop or kill that was understood
	kindPipes  kind = 'p' // the pipes of a program that lasts, stdout and stderr
	kindEnd    kind = 'e' // ending as JSON, behind its length, then the output
)

// setup is all that a shim must know before its first round.
type setup struct {
	Layer Layer `json:"layer"`
	// Mounts says that the shim, and then each round, has a mount namespace.
	Mounts  bool     `json:"mounts"`
	Wrapper []string `json:"wrapper"`
	// Plan is what precedes each program.
	Plan plan `json:"plan"`
	// Cgroup says that a descriptor of the slot's cgroup directory comes along,
	// in which the shim starts programs.
	Cgroup bool `json:"cgroup"`
	// HeadStart is how long a program writes before its pipes are passed on.
	HeadStart time.Duration `json:"headStart"`
	// Try is a directory to try views in; empty for none.
	Try string `json:"try"`
}

// readiness is the answer to setup.
type readiness struct {
	// Proc is why there is no /proc of its own although there should be.
	Proc string `json:"proc"`
	// View is why no view can be had, if that was tried.
	View string `json:"view"`
	// Fault is why the shim is of no use; nil if it is ready.
	Fault *fault `json:"fault"`
}

// ending is how a round ended.
type ending struct {
	Result Result `json:"result"`
	// Unkillable says that processes survived.
	Unkillable bool   `json:"unkillable"`
	Fault      *fault `json:"fault"`
	// Written are the bytes of stdout and stderr that stand behind this.
	Written [2]int `json:"written"`

	lost error // at the worker: why its output is
}

// encode makes a message of an ending and the output it counts.
func (e *ending) encode(output []byte) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("describe the end: %w", err)
	}
	message := binary.LittleEndian.AppendUint16([]byte{byte(kindEnd)}, uint16(len(text)))
	return append(append(message, text...), output...), nil
}

// decodeEnding takes such a message apart, without its kind.
func decodeEnding(data []byte) (e ending, output [2][]byte, err error) {
	if len(data) < 2 {
		return e, output, errGarbled
	}
	n := int(binary.LittleEndian.Uint16(data))
	if data = data[2:]; len(data) < n {
		return e, output, errGarbled
	}
	if err := json.Unmarshal(data[:n], &e); err != nil {
		return e, output, fmt.Errorf("the end: %w", err)
	}
	out, data := e.Written[0], data[n:]
	if out < 0 || out > len(data) || len(data)-out != e.Written[1] {
		return e, output, errGarbled
	}
	return e, [2][]byte{data[:out], data[out:]}, nil
}

// fault is an error on its way to the worker: its text, and the errno that errors.Is
// finds.
type fault struct {
	// Reason is that of a process.StartError, whose own text it is then.
	Reason process.Reason `json:"reason"`
	// Option is the option that cannot be met, key:value, if that is why.
	Option string `json:"option"`
	// View says that it is the view that could not be had.
	View  bool          `json:"view"`
	Errno syscall.Errno `json:"errno"`
	Text  string        `json:"text"`
}

func newFault(err error) *fault {
	f := &fault{Reason: process.ReasonOther, Text: err.Error()}
	if start := (*process.StartError)(nil); errors.As(err, &start) {
		f.Reason, f.Text = start.Reason, start.Err.Error()
	}
	if limits := (*limitError)(nil); errors.As(err, &limits) {
		f.Option = limits.option
	}
	errors.As(err, &f.Errno)
	f.View = errors.Is(err, ErrView)
	return f
}

func (f *fault) Error() string { return f.Text }

func (f *fault) Unwrap() error {
	switch {
	case f.View:
		return ErrView
	case f.Errno != 0:
		return f.Errno
	}
	return nil
}

// order is what a shim is to start.
type order struct {
	process.Command
	view View
	// stdin is a descriptor that comes along, 0 for none. The packet owns it.
	stdin int
	nice  int
}

// encode joins words by NUL, which none of them holds: arguments are bytes and need not be
// text, so JSON would spoil them.
func (o *order) encode() []byte {
	words := slices.Concat([]string{
		o.Dir, o.File, o.Path, o.view.Lower, o.view.Work, o.view.Store, strconv.Itoa(o.stdin), strconv.Itoa(o.nice), strconv.Itoa(len(o.Args)),
	}, o.Args, o.Env)
	return []byte(strings.Join(words, "\x00"))
}

var errGarbled = errors.New("a message is garbled")

func decodeOrder(data []byte) (o order, err error) {
	words := strings.Split(string(data), "\x00")
	const head = 9
	if len(words) < head {
		return o, errGarbled
	}
	n, err := strconv.Atoi(words[head-1])
	if err != nil || n < 0 || n > len(words)-head {
		return o, errGarbled
	}
	o.Dir, o.File, o.Path, o.Args, o.Env = words[0], words[1], words[2], words[head:head+n], words[head+n:]
	o.view = View{Lower: words[3], Work: words[4], Store: words[5]}
	stdin, err1 := strconv.Atoi(words[6])
	nice, err2 := strconv.Atoi(words[7])
	o.stdin, o.nice = stdin, nice
	return o, errors.Join(err1, err2)
}

func encodeTime[T ~int64](k kind, at T) []byte {
	return binary.LittleEndian.AppendUint64([]byte{byte(k)}, uint64(at))
}

func decodeTime(data []byte) time.Duration {
	if len(data) < 8 {
		return 0
	}
	return time.Duration(binary.LittleEndian.Uint64(data))
}
