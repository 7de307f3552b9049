#!/bin/sh
# Prints the time, waits for some seconds (2 unless told otherwise), and prints
# the time again.
date
sleep "${1:-2}"
date
