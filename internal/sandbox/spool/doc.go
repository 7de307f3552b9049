// Package spool keeps on disk what could not be delivered, so that it outlives
// its process, and is delivered once by one of them.
//
//	DIR/NAMESPACE/WORKER/lock             flock: one process delivers
//	DIR/NAMESPACE/WORKER/NAME.result      a line of JSON, then the data
//	DIR/NAMESPACE/WORKER/.tmp-*           being written, or left by a dead process
//
// Names are percent-encoded, so none can reach another directory. A file is
// written aside, made durable and renamed: it is absent or whole, also after a
// crash. What it holds means nothing to this package.
package spool
