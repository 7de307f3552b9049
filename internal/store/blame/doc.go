// Package blame says who is to blame for failures: the node they happened on,
// or the program. It has no clock and no I/O: whoever calls it has counted what
// happened, and acts on what it says. docs/QUARANTINE.md tells the rules to
// operators, docs/decisions/0013-quarantine.md why they are as they are.
//
// # What is counted
//
// A round is counted when it is settled: as a success or as a failure of any
// class but infrastructure. Rounds that overran, were lost or handed back are
// not counted. A node's run is what failed on it since its last success, of any
// program; one success ends it for all programs.
package blame
