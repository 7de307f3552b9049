#!/bin/sh
# report DAY TOTALS QUALITY prints what there is to say about a day. The last two words are the results of other steps.
echo "Readings of $1 ($3):"
echo "$2"
