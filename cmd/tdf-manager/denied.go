package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// finish gives the error of a verb its remedy and its exit code.
func (s *session) finish(err error) error {
	var coded cli.Coded
	if !errors.As(err, &coded) && denied(err) {
		return cli.WithCode(cli.ExitRedis, fmt.Errorf("[redis] username = %s: Redis does not let this user do it; %s: %w",
			cmp.Or(s.cfg.Redis.Username, "default"), neededLogin(s.cmd.Name()), err))
	}
	return withExitCode(err)
}

// denied reports whether Redis has refused a call because of an access list. In a
// script it answers in words, and not by NOPERM.
func denied(err error) bool {
	var answer interface {
		error
		RedisError()
	}
	if !errors.As(err, &answer) {
		return false
	}
	text := answer.Error()
	return strings.HasPrefix(text, "NOPERM ") || strings.Contains(text, "The user executing the script can't ")
}

// neededLogin says with which login a verb works.
func neededLogin(verb string) string {
	switch verb {
	case "flush":
		return "use the login of an administrator of Redis"
	case "verify":
		return "use the login of a server, as tdf-manager acl server prints it"
	default:
		return "use the login of a manager, as tdf-manager acl manager prints it"
	}
}
