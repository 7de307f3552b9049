package shim

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
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
