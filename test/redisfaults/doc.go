// Package redisfaults lets Redis fail in every way while a server, a manager and
// three workers work on it under load: killed and started again, hanging with its
// connections open, replaced by another master (Sentinel, Cluster), short of memory
// or disk, without its scripts, refusing by each of its errors.
//
// Each test asks the same: is every task that was opened archived once, with no
// round run twice; does every call return in time; and how long does it take from
// the end of the fault until every worker has had a task again, opened, settled and
// archived by the others. That time is logged in a line that begins "recovery" and
// has a bound.
//
// Faults are short, and few, so that the package takes about a minute. With
// TDF_LONG=1 they last as long, and come as often, as they do in earnest.
package redisfaults
