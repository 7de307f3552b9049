// Package timing has what every loop of TDF needs of time: a pause that ends
// with a context, the way between the system's durations and those of the
// rules, and a backoff.
package timing
