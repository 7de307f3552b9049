// Package shim runs the programs of rounds so that nothing of them survives.
//
// Each slot of a worker has one long-lived process, its shim: this program
// executing itself under the name tdf-shim. The shim starts the program of each
// round, kills everything that is left of it and only then reports the end. It
// is the dead-man switch too: it kills the round when the lease deadline passes
// that the worker no longer moves (frozen), or when its socket closes (dead).
//
// There are three layers. With pidns the shim is PID 1 of a PID namespace with a
// /proc of its own: the kernel itself kills all of it with the shim. With cgroup
// and group the shim is a subreaper, to which every orphaned descendant falls, so
// that it finds all of them; with cgroup they are moreover in a control group,
// which can be killed as one even when the shim is dead. With group only a token
// in the environment of the programs (TDF_SHIM) shows what a shim killed with
// SIGKILL has left behind: a program that cleared its environment and left its
// session before escapes then, and only then. With cgroup the same holds for a
// program that has the right to leave its control group, which one of an
// ordinary user has: the user it was delegated to is its own.
//
// The program leads a session, so a process group too, which gets SIGTERM first
// when a round is to end early. It dies with the shim (parent-death signal). It
// inherits three descriptors and the environment it is given, nothing else: an empty
// stdin and two pipes. What is in them when a short program ends comes with the news of
// its end; those of a program that lasts or writes much go to the worker.
//
// A program whose user, resource limits or cgroup v1 must be set before it is
// executed goes through one more execution of this program, as tdf-launch.
//
// Any program that imports this package can be executed under those two names;
// its main function is not reached then.
//
// The package knows neither tasks nor Redis and is for Linux only.
package shim
