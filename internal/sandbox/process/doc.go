// Package process starts the program of one round and explains why a program
// could not be started.
//
// [Command.Start] has ./run.sh executed in its program directory with an argument
// vector, never through a command string, so nothing in a task's input is
// interpreted. How a process is made is its caller's: it hands in an [Execute].
// The bare errno that comes of a failure becomes a [StartError], which tells what
// is wrong with the program on disk and what to do about it.
//
// What a program is given is prepared here too: the words of a task's input
// ([SplitInput]), an environment without what it should not see ([Environment]),
// and no descriptor that the worker inherited ([SealDescriptors]).
//
// Containing a program and ending it is the part of internal/sandbox/shim, keeping its
// output that of internal/sandbox/capture. The package knows neither tasks nor Redis and
// is for Linux only.
package process
