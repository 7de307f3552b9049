// Package cgroup keeps the processes of a worker's rounds together in control
// groups, one group a slot, so that all of them can be killed, whatever they do
// to get away, and so that their memory and number can be limited.
//
// Killing takes version 2 of control groups, wherever it is mounted. Limits take
// the controllers memory and pids, which belong to version 2 or, on a hybrid host,
// to hierarchies of version 1: a group is then a directory in each of them.
//
// [Open] tries everything it will need. What cannot be had is no error of Open:
// [Tree.CanKill] and [Tree.CanLimit] say why and what to do.
//
// Below the worker's own cgroup, or the one of its configuration, there is one
// directory tdf-NAME a worker, and in it slot-0.MARK, slot-1.MARK and so on. The
// worker itself is never moved.
package cgroup
