package shim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/tdf-go/tdf/internal/sandbox/cgroup"
	"github.com/tdf-go/tdf/internal/sandbox/remove"
)

// way is one way to start a shim.
type way struct {
	layer Layer
	// group says that each slot has a control group, whatever the layer.
	group bool
	// user says that the PID namespace is in a user namespace of its own.
	user bool
	// mounts says that each round has a mount namespace of its own. An ordinary
	// user's programs have no right to mount anything, so they need none.
	mounts bool
}

// name is the containment that an administrator knows it by.
func (w way) name() string {
	if w.group {
		return string(Cgroup)
	}
	return string(w.layer)
}

func (l Layer) known() bool { return l == "" || l == PIDNamespace || l == Cgroup || l == Group }

// ways are those to try for a layer and, after it, the weaker ones. A control
// group alone does not hold a program that may leave it, so it goes with a PID
// namespace where there is one.
func ways(want Layer) []way {
	cgroup := []way{{layer: Cgroup, group: true, mounts: true}, {layer: Cgroup, group: true}}
	group := []way{{layer: Group, mounts: true}, {layer: Group}}
	namespace := func(inGroup bool) []way {
		return []way{
			{layer: PIDNamespace, group: inGroup, mounts: true},
			{layer: PIDNamespace, group: inGroup, user: true, mounts: os.Geteuid() == 0},
		}
	}
	switch want {
	case Cgroup:
		return slices.Concat(namespace(true), namespace(false), cgroup, group)
	case Group:
		return group
	case PIDNamespace:
	}
	return slices.Concat(namespace(false), cgroup, group)
}

// choose takes the first way that works.
func (c *Container) choose() error {
	try := c.options.ways
	if try == nil {
		try = ways(c.options.Want)
	}
	for _, w := range try {
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
		if why := fmt.Sprintf("%s: %v%s", w.name(), err, remedy(w, err)); !slices.Contains(c.missing, why) {
			c.missing = append(c.missing, why)
		}
	}
	return fmt.Errorf("shim: no containment works here: %s", strings.Join(c.missing, "; "))
}

// sensible leaves out what cannot work: an ordinary user makes PID namespaces in
// user namespaces only, and in one there are no users to run as.
func (c *Container) sensible(w way) bool {
	root := os.Geteuid() == 0
	switch {
	case w.user:
		return c.who == nil
	case w.mounts:
		return root
	}
	return true
}

// trialSlot is no slot that another worker of that name, which is not known to be
// dead yet, may have.
const trialSlot = -1

// try starts a shim and ends it.
func (c *Container) try() error {
	if c.way.group {
		if err := c.openTree(); err != nil {
			return err
		}
		if err := c.tree.CanKill(); err != nil {
			return err
		}
	}
	dir, noDir := tryDirectory(c.options.TempDir)
	if noDir == nil {
		defer func() { _ = remove.Tree(dir) }() // it holds nothing
		c.tryDir = dir
	}
	slot, err := c.Start(trialSlot)
	c.tryDir = ""
	if err != nil {
		return err
	}
	c.hostProc, c.noView = slot.hostProc, slot.noView
	if noDir != nil {
		c.noView = noDir.Error()
	}
	return slot.Close()
}

// enough applies Require to the layer that works.
func (c *Container) enough() error {
	want := c.options.Want
	if !c.options.Require || c.way.name() == string(want) || want == "" && c.way.layer != Group {
		return nil
	}
	value := string(want)
	if want == "" {
		value = "auto"
	}
	return &OptionError{Key: "containment", Value: value,
		Err:    fmt.Errorf("only %s works here: %s", c.way.name(), strings.Join(c.missing, "; ")),
		Remedy: "give the worker what is missing, or set require_containment = false"}
}

// remedy is what an administrator can do about a failed try.
func remedy(w way, err error) string {
	unavailable := (*cgroup.UnavailableError)(nil)
	switch denied := errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES); {
	case errors.As(err, &unavailable): // it says so itself
	case w.user && denied:
		return " (user namespaces are forbidden: sysctl kernel.unprivileged_userns_clone, " +
			"kernel.apparmor_restrict_unprivileged_userns, or the container's seccomp profile)"
	case w.user && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS)):
		return " (user namespaces are off or used up: sysctl user.max_user_namespaces)"
	case w.mounts && denied:
		return " (root needs the capability CAP_SYS_ADMIN)"
	}
	return ""
}

// unheld says, a sentence each, what a program can do that this containment does
// not undo at the end of its round.
func (c *Container) unheld() []string {
	all := []string{"what a program has another daemon start (cron, systemd, a container engine) outlives its round"}
	switch c.way.layer {
	case PIDNamespace:
	case Cgroup:
		all = append(all, "a program that may leave its control group, as root may, and clears its environment, survives if its shim is killed")
	case Group:
		all = append(all, "a program that clears its environment and leaves its session survives if its shim is killed")
	}
	if os.Geteuid() == 0 && !c.way.mounts {
		all = append(all, "what a program mounts stays")
	}
	if c.noView != "" {
		all = append(all, "a program can change program_dir as far as its user may, and large programs are copied for each round: "+c.noView)
	}
	return all
}
