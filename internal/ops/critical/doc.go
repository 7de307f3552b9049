// Package critical estimates how long a graph of tasks still takes: from how long its tasks took that have ended, and from
// the longest chain of those that have not. It is pure: it knows no clock and reads nothing.
//
// A graph of a hundred thousand tasks with a million needs takes some tens of milliseconds.
package critical
