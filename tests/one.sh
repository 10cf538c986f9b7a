#!/usr/bin/env bash
# one.sh - one test file, for prove. Tests make things fail on purpose, and the program warns of it: what it says on standard error is
# shown only where the test fails.
said=$(mktemp "${ARCUS_TMP:-/tmp}/said.XXXXXX")
"$@" 2>"$said"
status=$?
[ $status = 0 ] || { echo "# $*: exit code $status"; tail -n 200 "$said"; } >&2
rm -f "$said"
exit $status
