// Package chaos proves that nothing is lost and nothing is counted twice while
// everything that can fail does.
//
// Its test starts three servers, seven workers, six workers over HTTP behind a proxy that
// cuts, delays and repeats, and two managers on a redis-server
// of its own (append-only file, everysec), opens tasks all the time whose programs
// succeed, fail, take too long, crash, print much or leave children behind, and
// does harm at random: it kills and freezes every member, takes workers away for
// up to three leases, kills, restarts and freezes Redis, cuts off the end of its
// file, makes it forget its scripts, sets its clock, fills the disk of one worker
// and cuts the network of another. Some programs are killed with a directory
// mounted into theirs. Disk, network and mounts take root; where a disk or a
// network cannot be had they are left out, and the report says so.
//
// When no more harm is done, all tasks must end archived, as their programs make
// them end. Then what Redis holds is compared with what programs and handlers have
// written into ledgers of their own, the auditor looks at the namespace, and no
// process of a program may be left. A report says what was done, how long it took
// until what was hit went on, and what was found. docs/RELIABILITY.md explains it.
//
// The environment says how: TDF_CHAOS_DURATION is how long harm is done (default
// 40s), TDF_CHAOS_SEED repeats the choices of a run (default: another one each
// time, printed), CHAOS_REPORT names a file for the report as JSON, and
// TDF_CHAOS_DIR a directory that keeps logs and ledgers.
package chaos
