// Package file reads plan files: plans (zk-plan) written down as YAML. It parses and checks a file, fills in its
// parameters, and expands its steps into tasks, without Redis. What it finds wrong is an [Errors] with the line of each.
//
// The format is described in docs/PLANFILE.md.
package file
