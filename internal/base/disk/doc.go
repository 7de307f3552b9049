// Package disk tells how much space file systems have left, so that a worker
// stops claiming before programs fail for want of it; and writes whole files
// that outlast a crash.
package disk
