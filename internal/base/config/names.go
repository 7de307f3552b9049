package config

import (
	"strings"
	"unicode"
	"unicode/utf8"
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
