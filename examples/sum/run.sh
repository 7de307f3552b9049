#!/bin/sh
# Prints the sum of the numbers it is called with.
sum=0
for number in "$@"; do
	sum=$((sum + number))
done
echo "$sum"
