// Package doctor looks at a Redis, at the namespace in it and at this host, and
// says what is wrong, how bad it is, and what to do about it.
//
// [Gather] reads the facts once. The judges are pure functions over them, one
// file for each subject.
package doctor
