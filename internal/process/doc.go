// Package process runs the program of one round and contains it.
//
// It starts ./run.sh in the program directory with an argument vector, never
// through a command string, so nothing in a task's input is interpreted. The
// program leads a session of its own, and so a process group of its own; that
// group is what is terminated on timeout and cancel and swept after every
// other end. The program dies with the worker (parent-death signal). Both
// outputs go straight into files, so no goroutine copies bytes and no
// grandchild that holds stdout can delay the end of a round.
//
// What a process group cannot do: a descendant that moves to another group or
// session escapes the sweep, and when the worker is killed only run.sh itself
// is killed with it, not its children.
//
// A program sees regular files as stdout and stderr. Opening /dev/stdout or
// /dev/stderr again with truncation ("echo x > /dev/stderr") therefore drops
// what that stream held before; ">>" and ">&2" do not.
//
// The package knows neither tasks nor Redis and is for Linux only.
package process
