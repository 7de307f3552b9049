#!/bin/sh
# validate MAX reads the results of all extract tasks, which are files in $TDF_ARGS_DIR, and fails if more than MAX
# readings are no numbers.
bad=$(awk -F, '$3 !~ /^[0-9]+$/ { n++ } END { print n + 0 }' "$TDF_ARGS_DIR"/*)
if [ "$bad" -gt "$1" ]; then
	echo "$bad readings are no numbers, at most $1 may be" >&2
	exit 1
fi
echo "$bad bad"
