package shim

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// way is one way to start a shim.
type way struct {
	layer Layer
	// user says that the PID namespace is in a user namespace of its own.
	user bool
}

func (l Layer) known() bool { return l == "" || l == PIDNamespace || l == Cgroup || l == Group }

// ways are those to try for a layer and, after it, the weaker ones.
func ways(want Layer) []way {
	switch want {
	case Cgroup:
		return []way{{layer: Cgroup}, {layer: Group}}
	case Group:
		return []way{{layer: Group}}
	case PIDNamespace:
	}
	return []way{{layer: PIDNamespace}, {layer: PIDNamespace, user: true}, {layer: Cgroup}, {layer: Group}}
}

// choose takes the first way that works.
func (c *Container) choose() error {
	for _, w := range ways(c.options.Want) {
		if !c.sensible(w) {
			continue
		}
		c.way = w
		err := c.try()
		if option := (*OptionError)(nil); errors.As(err, &option) {
			return err
		}
		if err == nil {
			return c.enough()
		}
		c.missing = append(c.missing, fmt.Sprintf("%s: %v%s", w.layer, err, remedy(w, err)))
	}
	return fmt.Errorf("shim: no containment works here: %s", strings.Join(c.missing, "; "))
}

// sensible leaves out what cannot work: an ordinary user makes PID namespaces in
// user namespaces only, and in one there are no users to run as.
func (c *Container) sensible(w way) bool {
	root := os.Geteuid() == 0
	switch {
	case w.layer != PIDNamespace:
		return true
	case w.user:
		return c.who == nil
	}
	return root
}

// trialSlot is no slot that another worker of that name, which is not known to be
// dead yet, may have.
const trialSlot = -1

// try starts a shim and ends it.
func (c *Container) try() error {
	if c.way.layer == Cgroup {
		if err := c.openTree(); err != nil {
			return err
		}
		if err := c.tree.CanKill(); err != nil {
			return err
		}
	}
	slot, err := c.Start(trialSlot)
	if err != nil {
		return err
	}
	c.hostProc = slot.hostProc
	return slot.Close()
}

// enough applies Require to the layer that works.
func (c *Container) enough() error {
	want := c.options.Want
	if !c.options.Require || c.way.layer == want || want == "" && c.way.layer != Group {
		return nil
	}
	value := string(want)
	if want == "" {
		value = "auto"
	}
	return &OptionError{Key: "containment", Value: value,
		Err:    fmt.Errorf("only %s works here: %s", c.way.layer, strings.Join(c.missing, "; ")),
		Remedy: "give the worker what is missing, or set require_containment = false"}
}

// remedy is what an administrator can do about a failed try.
func remedy(w way, err error) string {
	if w.layer != PIDNamespace {
		return ""
	}
	switch {
	case !w.user:
		return " (root needs the capability CAP_SYS_ADMIN)"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS):
		return " (user namespaces are off or used up: sysctl user.max_user_namespaces)"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return " (user namespaces are forbidden: sysctl kernel.unprivileged_userns_clone, " +
			"kernel.apparmor_restrict_unprivileged_userns, or the container's seccomp profile)"
	}
	return ""
}
