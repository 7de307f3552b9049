// Package top is the live screen of `tdf-manager top`: queues, workers, rates
// and the newest failures, read again and again from a [Source]. Where no
// terminal is, it prints one snapshot as plain tables.
//
// The screen is a model in the sense of Bubble Tea: [Run] starts the program,
// every message goes through one Update, and what is seen is a function of the
// model alone. The rates are differences of the counters of snapshots, taken
// by this package's own clock; ages are told by the clock of the snapshot.
package top
