package config

import (
	"errors"
	"strings"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// ruled makes a check of package route, whose errors say what is wanted and,
// behind a semicolon, what to write, one of this package.
func ruled(check func(string) error) func(string) error {
	return func(s string) error {
		if f := ruling(check(s)); f != nil {
			return invalid(f.problem, f.remedy)
		}
		return nil
	}
}

func ruling(err error) *fault {
	if err == nil {
		return nil
	}
	fe, ok := errors.AsType[*statemachine.FieldError](err)
	if !ok {
		return &fault{problem: err.Error()}
	}
	want, remedy, ok := strings.Cut(fe.Want, "; ")
	if !ok {
		remedy = "write " + want
	}
	return &fault{"not " + want, remedy}
}

func checkLabel(s string) error {
	_, err := route.ParseLabels(s)
	return err
}

// resources takes a list of name=number.
func resources(into *route.Resources) value {
	return value{kind: "list", limits: "of name=number", parse: func(s string) *fault {
		r, err := route.ParseResources(commas(s))
		if err == nil {
			*into = r
		}
		return ruling(err)
	}}
}

// threads takes a number of tasks, or unlimited.
func threads(into *route.Limit) value {
	return value{kind: "whole number", limits: "0 or more, or " + route.Unlimited, parse: func(s string) *fault {
		l, err := route.ParseLimit(s)
		if err == nil {
			*into = l
		}
		return ruling(err)
	}}
}

// ofTask takes what the rules allow for a field of a task, and keeps the one
// text they have for it.
func ofTask(into *string, field, kind, limits string) value {
	return value{kind: kind, limits: limits, parse: func(s string) *fault {
		text, err := route.ParseDefault(field, s)
		if err == nil {
			*into = text
		}
		return ruling(err)
	}}
}

// listOfTask is ofTask for lists, which may be separated by blanks too.
func listOfTask(into *string, field, limits string) value {
	v := ofTask(into, field, "list", limits)
	parse := v.parse
	v.parse = func(s string) *fault { return parse(commas(s)) }
	return v
}

// commas separates a list by commas only.
func commas(s string) string {
	return strings.Join(strings.FieldsFunc(none(s), func(r rune) bool { return r == ',' || r == ' ' }), ",")
}
