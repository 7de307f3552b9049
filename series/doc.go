// Package series opens tasks again and again: a [Series] is a task, a unique key, and when it is due. Each occurrence is a task of its own.
// The next time comes from a cron expression in a time zone, from an interval, or from the program itself, which writes eta= to
// $TDF_CONTROL.
//
// A [Runner] in each server opens what is due. It decides by a pure function, and writes series and tasks at once, if the
// series is as it was read: so each occurrence is opened once, with any number of runners, even if they are killed.
package series
