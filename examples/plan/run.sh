#!/bin/sh
# Prints its number after a tenth of a second. It is called with the number, with the
# numbers it needs in one word such as 3,1,4, and then with the results of the tasks
# that it needs: the same numbers in the same order, or the task fails.
number=$1
wanted=$2
shift 2
IFS=,
if [ "$*" != "${wanted#-}" ]; then
	echo "task $number got '$*' and wants '${wanted#-}'" >&2
	exit 1
fi
sleep 0.1
echo "$number"
