package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// readSecrets settles where the password comes from and warns of files that
// others can read. Of password and password_file the one from the stronger
// source wins; both from one source is a contradiction.
func (l *loader) readSecrets() {
	redis := &l.file.Redis
	own, byFile := l.file.settings["redis.password"], l.file.settings["redis.password_file"]
	switch {
	case redis.PasswordFile == "":
	case own.level > byFile.level:
		redis.PasswordFile = ""
		l.forget("redis.password_file")
	case own.level == byFile.level && redis.Password != "":
		l.reportRedis("password_file", "given together with password", "remove one of the two")
	default:
		l.readPasswordFile(redis)
	}
	if own.level == fromFile && redis.Password != "" && redis.PasswordFile == "" {
		l.warnIfExposed(l.file.Path)
	}
	if s := l.file.settings["redis.sentinel_password"]; s.level == fromFile && l.file.Redis.SentinelPassword != "" {
		l.warnIfExposed(l.file.Path)
	}
	l.warnIfExposed(redis.KeyFile)
	if l.file.Kind == ForWorker {
		l.warnIfExposed(l.file.Worker.NetrcFile)
	}
}

func (l *loader) readPasswordFile(redis *Redis) {
	password, f, err := passwordIn(redis.PasswordFile)
	switch {
	case err != nil:
		l.reportUnreadable("redis", "password_file", err)
		return
	case f != nil:
		l.reportRedis("password_file", f.problem, f.remedy)
		return
	}
	redis.Password = password
	l.forget("redis.password")
	l.warnIfExposed(redis.PasswordFile)
}

// passwordIn reads a file that holds one line, a password. f says what is wrong
// with what it holds.
func passwordIn(path string) (password string, f *fault, err error) {
	data, err := readLimited(path, maxValue)
	if err != nil {
		return "", nil, err
	}
	password = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if password == "" {
		return "", &fault{"the file is empty", "write the password into it, or remove the key"}, nil
	}
	if f := printable(password); f != nil {
		return "", &fault{"the password in the file is unusable: " + f.problem, "write it as one line of text"}, nil
	}
	return password, nil, nil
}

// ReadPassword reads a file as password_file is read. The error never holds what
// is in it.
func ReadPassword(path string) (string, error) {
	password, f, err := passwordIn(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("password file %s: %w", path, err)
	case f != nil:
		return "", &Error{Key: "password file", Value: path, Problem: f.problem, Remedy: f.remedy, Err: ErrInvalid}
	}
	return password, nil
}

// Exposed reports whether every user of this host can read a file.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o004 != 0
}

// forget drops a setting that a stronger one has replaced, so that Print does
// not show both.
func (l *loader) forget(name string) { l.file.settings[name] = setting{} }

// exposedWarning follows the path of a file.
const exposedWarning = " holds a secret and can be read by every user; chmod 600 it"

// warnIfExposed warns of a file with a secret that every user can read. It is
// no error: secrets mounted into containers usually have such modes.
func (l *loader) warnIfExposed(path string) {
	if !Exposed(path) {
		return
	}
	warning := path + exposedWarning
	if slices.Contains(l.file.warnings, warning) {
		return
	}
	l.file.warnings = append(l.file.warnings, warning)
}

// reportUnreadable reports a file named by a key.
func (l *loader) reportUnreadable(section, key string, err error) {
	e := l.errorAt(section, key, "the file cannot be read: "+cause(err), "check the path and the permissions")
	e.Err = errors.Join(ErrInvalid, err)
	l.report(e)
}
