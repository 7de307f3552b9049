// Package acceptance looks at TDF from outside, as its users do: the built
// programs work together on a real Redis, and tests see what the programs print,
// what stands in Redis, and what run.sh itself writes down.
//
// It covers the cases A01 to A53, and the scenarios of faults and abuse, where
// they need more than one program; the others are covered where the code is.
// docs/ACCEPTANCE.md names the test of each, and a test here keeps that document
// honest.
package acceptance
