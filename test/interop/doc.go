// Package interop holds the acceptance test that programs in other languages can
// take part: a foreign manager and worker, a process of its own that speaks raw
// RESP (see client), beside our server and our worker.
package interop
