package config

import (
	"errors"
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
}

func (l *loader) readPasswordFile(redis *Redis) {
	data, err := readLimited(redis.PasswordFile, maxValue)
	if err != nil {
		l.reportUnreadable("redis", "password_file", err)
		return
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if password == "" {
		l.reportRedis("password_file", "the file is empty", "write the password into it, or remove the key")
		return
	}
	if f := printable(password); f != nil {
		l.reportRedis("password_file", "the password in the file is unusable: "+f.problem, "write it as one line of text")
		return
	}
	redis.Password = password
	l.forget("redis.password")
	l.warnIfExposed(redis.PasswordFile)
}

// forget drops a setting that a stronger one has replaced, so that Print does
// not show both.
func (l *loader) forget(name string) { l.file.settings[name] = setting{} }

// warnIfExposed warns of a file with a secret that every user can read. It is
// no error: secrets mounted into containers usually have such modes.
func (l *loader) warnIfExposed(path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return
	}
	warning := path + " holds a password and can be read by every user; chmod 600 it"
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
