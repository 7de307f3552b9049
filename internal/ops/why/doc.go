// Package why explains why a task is where it is, and what would change it.
//
// A [Situation] is a task and everything around it, read at one moment; [Explain]
// and [ExplainQueue] turn it into reasons for people, each with the change that
// would take it away. Whether a task and a worker go together at all is asked of
// route.Unfit, as the claim does. What the claim script decides beside that
// (limits, free resources, gates, order) is told again here in Go; a test holds
// the two together: a task that a claim would take has no reason that blocks it,
// any other has one at least, and carrying out what its reasons propose makes
// the claim take it.
//
// The package is pure: no clock, no input or output.
package why
