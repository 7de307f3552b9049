// Package upgrade proves that a release can be installed while tasks run. Its tests
// build the server, worker and manager of the previous release from the history of
// the repository (previous.txt names the commit) and run them beside the current
// ones on one namespace: next to each other, and replaced one by one, in both
// orders and back. At the end everything must be archived once, no round may have
// run twice, and the auditor must find nothing.
//
// docs/PROTOCOL.md, "Versions", has the rule that this holds us to.
package upgrade
