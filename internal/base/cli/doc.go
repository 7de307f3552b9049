// Package cli is what the three commands of TDF share: version, logger,
// signals, exit codes, and output as table or JSON. Only this package and cmd
// know about signals and the end of the process.
package cli
