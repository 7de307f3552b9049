// Package store keeps tasks in Redis. It is the only importer of go-redis.
//
// The package statemachine decides; this package compares and moves. Each
// mutation is one Lua script under scripts/, with KEYS, ARGV and Returns in
// its header; each compares first and writes after, and each may be sent twice
// (clients repeat a call whose reply was lost) and then answers as if sent
// once. DESIGN.md beside this file says which guarantees follow and why.
package store
