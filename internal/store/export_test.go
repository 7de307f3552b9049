package store

import (
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// MutatingScripts names the scripts that write, in order.
func MutatingScripts() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(scriptList)) {
		if scriptList[name].writes {
			names = append(names, name)
		}
	}
	return names
}

// Script is a script of s as it is sent, to recognise its calls.
func (s *Store) Script(name string) *redis.Script { return s.scripts.byName[name] }

// KeyFunctions are all keys of a namespace, by what a documentation calls them.
func KeyFunctions(namespace string) map[string]string {
	k := newKeys(namespace)
	return map[string]string{
		"meta": k.meta(), "task_id": k.taskID(), "task:<id>": k.task(7), "<state>": k.state("open"),
		"buckets": k.buckets(), "ready:<bucket>": k.ready(defaultBucketName), "wake:<bucket>": k.wake(defaultBucketName),
		"wake_server": k.wakeServer(), "due": k.due(), "request:<key>": k.request("key"), "claim:<worker>": k.lastClaim("name"),
		"set_aside": k.setAside(), "managers": k.managers(), "worker": k.worker(), "worker_id": k.workerIDs(),
		"worker_id:<name>": k.workerID("name"), "changed": k.changed(),
	}
}
