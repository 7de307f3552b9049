// Package httpapi is what a site shows over HTTP: whether a daemon is alive and ready, and its figures for Prometheus. It stands on
// package manager alone, and tdf-server serves it where [http] listen says.
package httpapi
