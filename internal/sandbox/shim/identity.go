package shim

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// identity is the user that programs run as.
type identity struct {
	UID    int    `json:"uid"`
	GID    int    `json:"gid"`
	Groups []int  `json:"groups"`
	Name   string `json:"name"`
	Home   string `json:"home"`
}

// lookup finds the user of run_as; nil for the user of this process.
func lookup(runAs string) (*identity, error) {
	if runAs == "" {
		return nil, nil //nolint:nilnil // nobody is a good answer
	}
	who, err := find(runAs)
	if err != nil {
		return nil, &OptionError{Key: "run_as", Value: runAs, Err: err,
			Remedy: "name a user of this host, or number:number"}
	}
	if os.Geteuid() != 0 {
		return nil, &OptionError{Key: "run_as", Value: runAs, Err: syscall.EPERM,
			Remedy: "start the worker as root, or leave run_as empty"}
	}
	return who, nil
}

func find(runAs string) (*identity, error) {
	name, group, withGroup := strings.Cut(runAs, ":")
	who, err := findUser(name, group)
	if err != nil || !withGroup {
		return who, err
	}
	who.GID, err = findGroup(group)
	return who, err
}

// findUser takes a number without an entry too, if the group is given.
func findUser(name, group string) (*identity, error) {
	account, err := user.Lookup(name)
	number, notNumber := strconv.ParseUint(name, 10, 31)
	if err != nil && notNumber == nil {
		account, err = user.LookupId(name)
		if err != nil && group != "" {
			return &identity{UID: int(number), Name: name, Home: "/"}, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("look up the user: %w", err)
	}
	return identify(account)
}

func identify(account *user.User) (*identity, error) {
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	ids, err := account.GroupIds()
	if err := errors.Join(uidErr, gidErr, err); err != nil {
		return nil, err
	}
	who := &identity{UID: uid, GID: gid, Name: account.Username, Home: account.HomeDir}
	for _, id := range ids {
		if n, err := strconv.Atoi(id); err == nil {
			who.Groups = append(who.Groups, n)
		}
	}
	return who, nil
}

func findGroup(name string) (int, error) {
	group, err := user.LookupGroup(name)
	if err == nil {
		return strconv.Atoi(group.Gid)
	}
	if number, numberErr := strconv.ParseUint(name, 10, 31); numberErr == nil {
		return int(number), nil
	}
	return 0, fmt.Errorf("look up the group: %w", err)
}

// credential is what a fork takes.
func (i *identity) credential() *syscall.Credential {
	if i == nil {
		return nil
	}
	groups := make([]uint32, len(i.Groups))
	for n, id := range i.Groups {
		groups[n] = uint32(id)
	}
	return &syscall.Credential{Uid: uint32(i.UID), Gid: uint32(i.GID), Groups: groups}
}

// environment puts the user's own variables in place of the worker's.
func (i *identity) environment(env []string) []string {
	if i == nil {
		return env
	}
	kept := make([]string, 0, len(env)+3)
	for _, entry := range env {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "HOME", "USER", "LOGNAME":
		default:
			kept = append(kept, entry)
		}
	}
	return append(kept, "HOME="+i.Home, "USER="+i.Name, "LOGNAME="+i.Name)
}

// The functions of package syscall change all threads of the process; these
// change the one they are called on, which is what executes.

// setThreadGroups sets the supplementary groups.
func setThreadGroups(groups []int) error {
	ids := make([]uint32, max(1, len(groups)))
	for i, id := range groups {
		ids[i] = uint32(id)
	}
	first := unsafe.Pointer(&ids[0]) //nolint:gosec // there is no function for one thread
	_, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
	if errno != 0 {
		return errno //nolint:wrapcheck // bare, as a launcher reports it
	}
	return nil
}

// lend runs f on a thread of its own, which has the rights of the user until it ends.
// Only the effective user and group change: the process keeps its own, so that nobody
// of that user can signal or trace it.
func (i *identity) lend(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that nothing else runs on the thread
		err := setThreadGroups(i.Groups)
		if err == nil {
			err = setThreadIDs(unix.SYS_SETRESGID, -1, i.GID, -1)
		}
		if err == nil {
			err = setThreadIDs(unix.SYS_SETRESUID, -1, i.UID, -1)
		}
		if err != nil {
			done <- fmt.Errorf("shim: take the rights of user %d: %w", i.UID, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// setThreadIDs sets real, effective and saved user or group; -1 keeps one.
func setThreadIDs(call uintptr, own, effective, saved int) error {
	if _, _, errno := syscall.RawSyscall(call, uintptr(own), uintptr(effective), uintptr(saved)); errno != 0 {
		return errno //nolint:wrapcheck // bare, as a launcher reports it
	}
	return nil
}
