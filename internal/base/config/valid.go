package config

import (
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/task"
)

// maxName is the longest name, in bytes.
const maxName = 128

// ValidName checks the name of an instance; kind ("worker", "server",
// "manager") is for the message. A name has 1 to 128 bytes of printable text,
// no "/" and "\" (it becomes part of file names), no blank at either end, and
// is not "." or "..". The error is an *Error.
func ValidName(kind, name string) error {
	refuse := func(problem string) error {
		return &Error{
			Key: kind + " name", Value: name, Err: ErrInvalid,
			Problem: kind + " name " + quote(name) + " " + problem,
			Remedy:  "choose a name such as " + kind + "-1",
		}
	}
	if problem := nameProblem(name); problem != "" {
		return refuse(problem)
	}
	switch {
	case strings.ContainsAny(name, `/\`):
		return refuse("contains a slash")
	case name == "." || name == "..":
		return refuse("means a directory")
	case strings.TrimSpace(name) != name:
		return refuse("starts or ends with a blank")
	}
	return nil
}

// ValidNamespace checks a namespace: 1 to 128 bytes of printable text without
// blanks, ":", "/", "\" and the pattern characters "*?[]". Braces are allowed
// as one outer pair only: "{sum}" is the form for a Redis Cluster, where it
// keeps all keys of the namespace on one node. The error is an *Error.
func ValidNamespace(name string) error {
	refuse := func(problem string) error {
		return &Error{
			Section: "tdf", Key: "namespace", Value: name, Err: ErrInvalid,
			Problem: problem,
			Remedy:  "choose a word such as MyProject, or {MyProject} for a Redis Cluster",
		}
	}
	if problem := nameProblem(name); problem != "" {
		return refuse(problem)
	}
	inner := name
	if strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}") {
		inner = name[1 : len(name)-1]
	}
	switch {
	case inner == "":
		return refuse("has nothing between its braces")
	case strings.ContainsAny(inner, "{}"):
		return refuse("has braces that are not one pair around the whole name")
	case strings.ContainsAny(name, " :/\\"):
		return refuse(`contains a blank, ":", "/" or "\"`)
	case strings.ContainsAny(name, "*?[]"):
		return refuse("contains a pattern character (* ? [ ])")
	}
	return nil
}

// nameProblem says what is wrong with any kind of name, or nothing.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxName:
		return "is longer than 128 bytes"
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "contains a control or invisible character"
	}
	return ""
}

// maxValue is the longest value, in bytes.
const maxValue = 4096

// printable refuses what no value may contain. A control character in a value
// is an accident of copying, or an attempt to forge a log line.
func printable(s string) error {
	switch {
	case len(s) > maxValue:
		return invalid("longer than 4096 bytes", "shorten it")
	case !utf8.ValidString(s):
		return invalid("not valid UTF-8", "save the file as UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return invalid("contains a control character", "remove it")
	}
	return nil
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
	if err := checkListen(s, remedy); err != nil {
		return err
	}
	if !loopback(s) {
		return invalid("not a loopback address: others than this host could connect", remedy)
	}
	return nil
}

// checkListen takes host:port, also with port 0.
func checkListen(s, remedy string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return invalid("not host:port", remedy)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return invalid("port out of range", remedy)
	}
	return nil
}

// loopback reports whether only programs of this host can connect to host:port.
func loopback(s string) bool {
	host, _, _ := net.SplitHostPort(s)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
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

// account is what names of users and groups look like, those of directory
// services included; a number is one too.
var account = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@+\\-]{0,127}\$?$`)

// checkRunAs takes user or user:group. Whether they exist is known only to the
// host the worker runs on, which looks at its start.
func checkRunAs(s string) error {
	for part := range strings.SplitSeq(s, ":") {
		if !account.MatchString(part) || strings.Count(s, ":") > 1 {
			return invalid("neither user nor user:group", "write names or numbers, for example nobody, nobody:nogroup or 65534:65534")
		}
	}
	return nil
}

// checkWrapper refuses what only a shell would understand: without one, a quote
// is an ordinary character, and a silent surprise.
func checkWrapper(s string) error {
	words := strings.Fields(s)
	switch {
	case len(words) == 0:
		return nil
	case strings.ContainsAny(s, "'\"`\\$|;<>&"):
		return invalid("contains a character that only a shell would understand",
			"write plain words split at blanks; what needs more goes into a script, whose absolute path stands here")
	case strings.HasPrefix(words[0], "-"):
		return invalid("starts with an option, not with a program", "write the program first, for example nice -n 10")
	case strings.Contains(words[0], "="):
		return invalid("starts with an assignment, not with a program", "write env before it, for example env LANG=C nice")
	case strings.Contains(words[0], "/") && !strings.HasPrefix(words[0], "/"):
		return invalid("a relative path would start in the directory of each task's program",
			"write an absolute path, or a name to be searched in PATH")
	}
	return nil
}

// checkCgroup wants a path that does not depend on a directory.
func checkCgroup(s string) error {
	if !strings.HasPrefix(s, "/") {
		return invalid("not an absolute path", "write for example /sys/fs/cgroup/tdf")
	}
	return nil
}

// checkSSHOptions refuses what rsync, which splits the words, would take apart
// in its own way.
func checkSSHOptions(s string) error {
	if strings.ContainsAny(s, "'\"\\") {
		return invalid("contains a quote or a backslash", "write plain words split at blanks, for example -i /etc/tdf/key -p 2222")
	}
	return nil
}

// optional makes a check let the empty text pass.
func optional(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "" {
			return nil
		}
		return check(s)
	}
}

// rlimitNames are the resource limits that can be set, as getrlimit(2) names
// them without RLIMIT_ and in lower case.
var rlimitNames = []string{"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"}

// Unlimited is the value of a resource limit that does not limit.
const Unlimited = math.MaxUint64

// rlimits takes resource limits by name, each name=value: a number or a size, or
// unlimited or inf for [Unlimited].
func rlimits(into *map[string]uint64) value {
	return of(into, "list", "", func(s string) (map[string]uint64, error) {
		if err := printable(s); err != nil {
			return nil, err
		}
		limits := map[string]uint64{}
		for _, item := range items(s) {
			name, value, err := rlimit(item)
			if _, twice := limits[name]; twice && err == nil {
				err = invalid("sets "+name+" twice", "remove one of the two")
			}
			if err != nil {
				return nil, err
			}
			limits[name] = value
		}
		return limits, nil
	})
}

func rlimit(item string) (name string, value uint64, err error) {
	name, text, ok := strings.Cut(item, "=")
	if !ok || !slices.Contains(rlimitNames, name) {
		return "", 0, invalid("not a resource limit",
			"write name=value with one of "+strings.Join(rlimitNames, " ")+", for example nofile=1024")
	}
	if text == string(task.Unlimited) || text == infinite {
		return name, Unlimited, nil
	}
	n, err := parseSize(text)
	if err != nil {
		return "", 0, invalid("not a value of "+name, "write a number (for cpu: seconds), a size such as 1GiB, or unlimited")
	}
	return name, uint64(n), nil
}
