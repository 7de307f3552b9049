// Package secrets tests, with the real programs, what passwords, access lists and
// certificates are for: that the programs need no more than the printed lists
// allow, that a password is found nowhere but where it belongs, and that TLS is
// used and refused as configured.
package secrets
