package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// scripts are the steps of a task's life for one layout, each a single atomic call.
type scripts struct {
	open, claim, renew, report, settle, archive *redis.Script
}

// newScripts puts the fragments of a layout before each step.
func newScripts(l layout) (*scripts, error) {
	s := &scripts{}
	head := []string{"prelude", "member_" + l.member, "ready_" + l.ready, "due_" + l.due, "log_" + l.log}
	for step, to := range map[string]**redis.Script{
		"open": &s.open, "claim": &s.claim, "renew": &s.renew,
		"report": &s.report, "settle": &s.settle, "archive": &s.archive,
	} {
		text, err := joinFragments(append(append([]string{}, head...), step))
		if err != nil {
			return nil, fmt.Errorf("script %s of layout %s: %w", step, l.name, err)
		}
		*to = redis.NewScript(text)
	}
	return s, nil
}

func joinFragments(names []string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			return "", err
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String(), nil
}
