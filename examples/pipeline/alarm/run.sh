#!/bin/sh
# alarm DAY ERROR says that the readings of a day were refused. A real one would send mail.
echo "the readings of $1 were refused"
