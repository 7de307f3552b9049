package redistest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// form is how a redis-server is given its directives.
type form int

const (
	// onCommandLine is for servers of one process: each start is like the first.
	onCommandLine form = iota
	// inFile is for a member of a group: what its group makes of it (master or
	// replica) is written back into the file, so that it holds after a restart.
	inFile
	// asSentinel is inFile for a sentinel.
	asSentinel
)

// file is the configuration file of a server in dir.
func (s *settings) file(dir string) string { return filepath.Join(dir, "redis.conf") }

// arguments are those of redis-server: the directives, or the file that has them,
// which is made at the first start.
func (s *settings) arguments(dir, port, socket string) ([]string, error) {
	directives := s.directives(dir, port, socket)
	if s.form == onCommandLine {
		return directives, nil
	}
	file := s.file(dir)
	if err := writeOnce(file, lines(directives)); err != nil {
		return nil, err
	}
	if s.form == asSentinel {
		return []string{file, "--sentinel"}, nil
	}
	return []string{file}, nil
}

func (s *settings) directives(dir, port, socket string) []string {
	all := []string{
		"--bind", "127.0.0.1", "--port", port, "--unixsocket", socket,
		"--dir", s.dataDir(dir), "--logfile", filepath.Join(dir, "redis.log"),
	}
	if s.base != "" {
		all = append([]string{s.base}, all...)
	} else if s.form != asSentinel {
		all = append(all, "--save", "", "--maxmemory-policy", "noeviction", "--databases", "16")
	}
	return append(all, s.config...)
}

// lines writes directives of the command line as a file has them.
func lines(directives []string) string {
	var text strings.Builder
	for _, word := range directives {
		if name, ok := strings.CutPrefix(word, "--"); ok {
			text.WriteString("\n" + name)
			continue
		}
		text.WriteString(" " + strconv.Quote(word))
	}
	return strings.TrimPrefix(text.String(), "\n") + "\n"
}

func writeOnce(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("configuration of redis-server: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("configuration of redis-server: %w", err)
	}
	return nil
}
