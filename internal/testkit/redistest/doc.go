// Package redistest gives tests a Redis of their own.
//
// [Start] runs a private redis-server for one test; [Shared] runs one per test
// binary, on first use, and [Main] stops it at the end. Both listen on a unix
// socket in a temporary directory and on a free loopback port, keep nothing on
// disk unless asked to, and die with the test binary.
//
// Tests that share a server stay apart by [Namespace] and, stricter, by
// [Server.Limited]: a user that may touch the keys of one namespace only, so
// that a stray key or a FLUSHDB fails instead of going unseen.
//
// [Proxy] stands between a client and the server and loses replies, cuts
// connections or hangs, on command.
//
// [StartSentinel] and [StartCluster] run groups of servers that take over from one
// another; each of their processes is a [Server] that can be killed or paused, and
// what its group has made of it holds after a restart.
//
// The package is imported from _test.go files only.
package redistest
