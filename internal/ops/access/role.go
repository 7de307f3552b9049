package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Role is what a program is to a namespace.
type Role string

// The roles.
const (
	// Server is tdf-server: it settles tasks and loads the scripts.
	Server Role = "server"
	// Worker is tdf-worker: it claims, executes and reports, and opens nothing.
	Worker Role = "worker"
	// Manager is a program that opens and archives tasks, and tdf-manager of an operator.
	Manager Role = "manager"
	// Viewer reads, and changes nothing.
	Viewer Role = "viewer"
)

// Errors of what a user is made from.
var (
	ErrRole = errors.New("no such role")
	ErrName = errors.New("unusable name of a Redis user")
)

// Roles returns all roles.
func Roles() []Role { return []Role{Server, Worker, Manager, Viewer} }

// ParseRole returns the role of that name.
func ParseRole(name string) (Role, error) {
	if role := Role(name); slices.Contains(Roles(), role) {
		return role, nil
	}
	names := make([]string, 0, len(grants))
	for _, role := range Roles() {
		names = append(names, string(role))
	}
	return "", fmt.Errorf("%w: %q; want %s", ErrRole, name, strings.Join(names, ", "))
}
