// Package access knows what each role may do in Redis, as data, and writes it as
// rules of an access list (ACL).
//
// A role has grants: commands together with the keys they may be used on. The
// rules of Redis hold inside scripts as well, so a grant names what the scripts
// of the role call. Names of keys are those of docs/PROTOCOL.md. What an access
// list stops, and what not: docs/decisions/0019-access-lists.md.
package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Placeholder stands where the hash of a password belongs. Redis refuses it, so
// that no list is loaded with it by mistake.
const Placeholder = "#SHA256-OF-THE-PASSWORD"

// User is a user of Redis to be.
type User struct {
	Role Role
	// Namespace is that of [tdf] namespace, with braces if it has them.
	Namespace string
	// Database is that of [redis] db. Key patterns hold in all of them, so a user
	// may select no other.
	Database int
	// Name of the user; empty means tdf-<role>-<namespace>, without braces.
	Name string
	// PasswordHash is what [Hash] returns; empty means [Placeholder].
	PasswordHash string
	// Old writes rules for Redis 6.2, which can neither tie commands to keys nor
	// tell reading a key from writing it: the role's commands on all its keys.
	Old bool
	// LoadScripts also allows to load scripts, for a program whose version no
	// server has. A server may do that in any case.
	LoadScripts bool
}

// Hash is how an access list holds a password.
func Hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return "#" + hex.EncodeToString(sum[:])
}

// Login is the name of the user.
func (u *User) Login() string {
	if u.Name != "" {
		return u.Name
	}
	return "tdf-" + string(u.Role) + "-" + strings.Trim(u.Namespace, "{}")
}

// Rules returns the words that follow the name of the user in an aclfile and in
// ACL SETUSER. The error is about the namespace, the name or the role.
func (u *User) Rules() ([]string, error) {
	if err := config.ValidNamespace(u.Namespace); err != nil {
		return nil, err
	}
	if strings.ContainsAny(u.Login(), " \t\r\n\x00") {
		return nil, fmt.Errorf("%w: %q: want a name without blanks", ErrName, u.Login())
	}
	all, found := grants[u.Role]
	if !found {
		return nil, fmt.Errorf("%w: %q", ErrRole, u.Role)
	}
	password := u.PasswordHash
	if password == "" {
		password = Placeholder
	}
	list := slices.Clone(all.grants)
	list[0].commands = slices.Concat(list[0].commands, u.more())
	// Redis 6.2 leaves a user all channels at a reset.
	words := append([]string{"reset", "resetchannels", "on", password}, patterns("&", u.Namespace, all.channels)...)
	if u.Old {
		return append(words, u.flat(list)...), nil
	}
	return append(words, u.tied(list)...), nil
}

// more are the commands without keys that depend on the user.
func (u *User) more() (commands []string) {
	if u.Database != 0 { // a connection begins in 0
		commands = append(commands, "select|"+strconv.Itoa(u.Database))
	}
	if u.LoadScripts && u.Role != Server {
		commands = append(commands, "script|load", "script|exists")
	}
	return commands
}

// Line is the user as a line of an aclfile.
func (u *User) Line() (string, error) {
	words, err := u.Rules()
	if err != nil {
		return "", err
	}
	return "user " + u.Login() + " " + strings.Join(words, " "), nil
}

// tied gives the first grant, which names no keys, to the user itself, and each
// other one a selector: all that a command needs must be in one of them.
func (u *User) tied(list []grant) []string {
	var words []string
	for i, g := range list {
		keys, commands := patterns("~", u.Namespace, g.keys), prefixed("+", g.commands)
		if i == 0 {
			words = append(append(words, keys...), commands...)
			continue
		}
		for k := range keys {
			keys[k] = inSelector(keys[k])
		}
		words = append(words, "("+strings.Join(append(keys, commands...), " ")+")")
	}
	return words
}

// inSelector writes a word as the parser of selectors reads it, to which, unlike
// that of other rules, quotation marks mean something.
func inSelector(word string) string {
	if !strings.ContainsAny(word, `"'`) {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// flat allows all commands on all keys.
func (u *User) flat(list []grant) []string {
	var keys, commands []string
	for _, g := range list {
		keys, commands = append(keys, g.keys...), append(commands, g.commands...)
	}
	if slices.Contains(keys, whole[0]) {
		keys = whole
	}
	return slices.Concat(patterns("~", u.Namespace, unique(keys)), prefixed("+", unique(commands)))
}

// unique sorts words, and returns each once.
func unique(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// patterns are rules about families of keys or channels of the namespace.
func patterns(sign, namespace string, families []string) []string {
	return prefixed(sign+literal.Replace(namespace)+":", families)
}

func prefixed(prefix string, words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = prefix + w
	}
	return all
}

// literal lets every byte of a text stand for itself in a pattern.
var literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`, `^`, `\^`)
