package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// queue is the group of verbs that look at queues and change them.
func (a *app) queue() *cobra.Command {
	cmd := &cobra.Command{
		Use: queueField, Aliases: []string{"queues"}, Short: "List the queues, add them, and change them",
		Long: "queue looks at the queues of the namespace and changes them, also while they are worked on. Lowering a\n" +
			"limit stops nothing that runs. Attributes are " + strings.Join(plainKeys(), ", ") + ";\n" +
			"default_NAME is the value of tasks that do not give their own.",
		Example: "  tdf-manager queue add nightly threads=20 maxthreads=2 nodes_pin=node-1,node-2\n" +
			"  tdf-manager queue set nightly threads=unlimited default_max_fails=3\n" +
			"  tdf-manager queue pause nightly\n" +
			"  tdf-manager queue ls",
	}
	cmd.AddCommand(a.queueLs(), a.queueShow(), a.queueAdd(), a.queueSet(), a.queuePause(), a.queueResume(), a.queueRm())
	return cmd
}

// plainKeys are the attributes of a queue but for the defaults of its tasks.
func plainKeys() []string {
	var keys []string
	for _, key := range manager.QueueKeys() {
		if !strings.HasPrefix(key, defaultPrefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// defaultPrefix is before the name of a task's value that a queue gives.
const defaultPrefix = "default_"

// readQueue reads a queue by its name.
func (s *session) readQueue(ctx context.Context, name string) (manager.Queue, error) {
	q, err := s.manager.Queue(ctx, name)
	return q, s.unknownQueue(ctx, name, err)
}

// readQueues reads queues by their names, each once; all of them must be there.
func (s *session) readQueues(ctx context.Context, names []string) ([]manager.Queue, error) {
	var queues []manager.Queue
	for _, name := range once(names) {
		q, err := s.readQueue(ctx, name)
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

// parsePairs reads name=value words.
func parsePairs(words []string) (map[string]string, error) {
	set := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("%q is no attribute; write name=value such as maxthreads=2", word)
		}
		if _, twice := set[name]; twice {
			return nil, cli.Usagef("attribute %s is given twice; give it once", name)
		}
		set[name] = value
	}
	return set, nil
}

// change is an attribute before and after.
type change struct{ name, before, after string }

// changesOf compares two lists of attributes, in the same order.
func changesOf(before, after []attribute) []change {
	var list []change
	old := map[string]string{}
	for _, a := range before {
		old[a.name] = a.text
	}
	for _, a := range after {
		if was, ok := old[a.name]; !ok || was != a.text {
			list = append(list, change{name: a.name, before: orNone(was), after: a.text})
		}
		delete(old, a.name)
	}
	for _, a := range before {
		if was, gone := old[a.name]; gone {
			list = append(list, change{name: a.name, before: was, after: noneText})
		}
	}
	return list
}

func orNone(text string) string {
	if text == "" {
		return noneText
	}
	return text
}

// changesText is for people: "threads none -> 20, paused false -> true".
func changesText(list []change) string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = fmt.Sprintf("%s %s -> %s", c.name, orNone(c.before), orNone(c.after))
	}
	return strings.Join(parts, ", ")
}
