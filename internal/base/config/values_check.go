package config

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxValue is the longest value, in bytes.
const maxValue = 4096

// printable refuses what no value may contain. A control character in a value
// is an accident of copying, or an attempt to forge a log line.
func printable(s string) *fault {
	switch {
	case len(s) > maxValue:
		return &fault{"longer than 4096 bytes", "shorten it"}
	case !utf8.ValidString(s):
		return &fault{"not valid UTF-8", "save the file as UTF-8"}
	case strings.ContainsFunc(s, unicode.IsControl):
		return &fault{"contains a control character", "remove it"}
	}
	return nil
}

func invalid(problem, remedy string) error {
	return &Error{Problem: problem, Remedy: remedy, Err: ErrInvalid}
}

func notEmpty(s string) error {
	if s == "" {
		return invalid("empty", "remove the line to get the default")
	}
	return nil
}

// checkHost takes a name, an address, or the path of a socket; neither a URL
// nor host:port, the two commonest slips.
func checkHost(s string) error {
	const remedy = "write only a host name or an IP address; port, username and password have their own keys"
	switch {
	case s == "":
		return invalid("empty", "write a host name, for example localhost")
	case strings.HasPrefix(s, "/"):
		return nil
	case strings.ContainsAny(s, "/@ \"'"):
		return invalid("not a host name", remedy)
	case strings.Contains(s, ":") && net.ParseIP(strings.Trim(s, "[]")) == nil:
		return invalid("not a host name", remedy)
	}
	return nil
}

func checkAddr(s string) error {
	const remedy = "write host:port, several separated by commas, for example redis-1:26379,redis-2:26379"
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || strings.ContainsAny(host, "/@") {
		return invalid("not host:port", remedy)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return invalid("port out of range", remedy)
	}
	return nil
}

// checkLoopback takes host:port where only programs of this host can connect.
func checkLoopback(s string) error {
	const remedy = "write 127.0.0.1:6060, [::1]:6060 or localhost:6060; reach it from elsewhere through ssh -L"
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return invalid("not host:port", remedy)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return invalid("port out of range", remedy)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return invalid("not a loopback address: others than this host could connect", remedy)
	}
	return nil
}

// checkFilename refuses placeholders that the worker does not replace: a file
// named $task_id would silently be shared by all tasks.
func checkFilename(s string) error {
	rest := strings.NewReplacer("$worker", "", "$taskId", "", "$round", "", "$program", "").Replace(s)
	if strings.Contains(rest, "$") {
		return invalid("contains an unknown placeholder", "known are $worker, $taskId, $round and $program")
	}
	return nil
}

// variable is what a shell accepts as the name of a variable, or the beginning
// of one and a star.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)

// checkVariable refuses the worker's own variables, which hold its secrets.
func checkVariable(s string) error {
	switch {
	case !variable.MatchString(s):
		return invalid("not the name of an environment variable", "write names only, for example LANG,TZ or JAVA_*")
	case strings.HasPrefix(s, "TDF_"):
		return invalid("variables that start with TDF_ cannot be passed on", "remove the name; the worker sets TDF_TASK_ID and so on itself")
	}
	return nil
}
