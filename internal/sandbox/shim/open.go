package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/process"
	"golang.org/x/sys/unix"
)

// startPatience is how long a shim may take until it is ready.
const startPatience = 10 * time.Second

// Start starts the shim of one slot. The numbers of slots that are open at the
// same time differ.
func (c *Container) Start(slot int) (*Slot, error) {
	s := &Slot{container: c, token: fmt.Sprintf("%s.%d", c.token, slot)}
	if err := s.openGroup(slot); err != nil {
		return nil, err
	}
	if err := s.launch(); err != nil {
		if s.group != nil {
			err = errors.Join(err, s.group.Remove())
		}
		return nil, err
	}
	return s, nil
}

// openGroup makes the cgroup if the layer or a limit needs it.
func (s *Slot) openGroup(slot int) (err error) {
	if c := s.container; c.way.group || c.options.limited() {
		s.group, err = c.tree.Slot(slot)
	}
	return err
}

// launch starts the shim and waits until it is ready.
func (s *Slot) launch() error {
	near, far, err := newLink()
	if err != nil {
		return fmt.Errorf("shim: socket: %w", err)
	}
	s.link = near
	s.child, err = startChild(s.token, far, s.container.way.attributes())
	_ = far.Close()
	if err != nil {
		near.close()
		return fmt.Errorf("clone: %w", err)
	}
	if err := s.introduce(); err != nil {
		near.close()
		s.child.kill()
		s.child.wait(killPatience)
		s.child.forget()
		return err
	}
	return nil
}

// introduce sends the setup and takes the answer.
func (s *Slot) introduce() error {
	text, err := json.Marshal(s.setup())
	if err != nil {
		return fmt.Errorf("shim: describe the setup: %w", err)
	}
	var files []int
	if s.group != nil && s.group.FD() >= 0 {
		files = append(files, s.group.FD())
	}
	if err := s.link.send(append([]byte{byte(kindSetup)}, text...), files...); err != nil {
		return fmt.Errorf("shim: send the setup: %w%s", err, s.child.lastWords())
	}
	s.link.await(startPatience)
	k, data, err := s.link.receive()
	if err != nil {
		return fmt.Errorf("shim: not ready: %w%s", err, s.child.lastWords())
	}
	var ready readiness
	if err := json.Unmarshal(data, &ready); err != nil || k != kindReady {
		return fmt.Errorf("shim: not ready: %w", errors.Join(errGarbled, err))
	}
	s.hostProc = ready.Proc
	return ready.error()
}

// error tells an option that cannot be met from another reason.
func (r *readiness) error() error {
	if r.Err == "" {
		return nil
	}
	err := &detail{text: r.Err, errno: r.Errno}
	if r.Option == "" {
		return err
	}
	key, value, _ := strings.Cut(r.Option, ":")
	return &OptionError{Key: key, Value: value, Err: err, Remedy: "give the worker the right to it, or leave it out"}
}

func (s *Slot) setup() setup {
	c := s.container
	out := setup{
		Layer: c.way.layer, Mounts: c.way.mounts, Wrapper: c.wrapper, RunAs: c.who, Rlimits: c.rlimits,
	}
	if s.group != nil {
		out.Cgroup = s.group.FD() >= 0
		out.Join = s.group.JoinPaths()
	}
	return out
}

// attributes are how the shim is forked.
func (w way) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setsid:    true, // what a terminal sends is not for it
		Pdeathsig: deathSignal(w.layer),
	}
	if w.layer == PIDNamespace {
		attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	if w.mounts {
		attr.Cloneflags |= unix.CLONE_NEWNS
	}
	if w.user {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // for its /proc
	}
	return attr
}

// request checks a program and makes it ready to send.
func (s *Slot) request(p *Program) (*request, error) {
	command := process.Command{Dir: p.Dir, Args: p.Args, Env: p.Env}
	if err := command.Check(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, &process.StartError{Path: filepath.Join(p.Dir, "run.sh"), Reason: process.ReasonDirectory, Err: err}
	}
	env := s.container.who.environment(p.Env)
	env = append(slices.Clip(env), tokenVariable+s.token)
	return &request{dir: dir, args: p.Args, env: env}, nil
}
