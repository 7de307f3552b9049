#!/bin/sh
# total reads the results of all extract tasks and prints the sum of each region.
awk -F, '$3 ~ /^[0-9]+$/ { sum[$1] += $3 } END { for (r in sum) print r, sum[r] }' "$TDF_ARGS_DIR"/* | sort
