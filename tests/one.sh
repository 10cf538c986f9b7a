#!/usr/bin/env bash
# one.sh - one test file, for prove. Tests make things fail on purpose, and the program warns of it: what it says on standard error is
# shown only where the test fails, and so is what the failed checks saw, which prove keeps to itself.
said=$(mktemp "${ARCUS_TMP:-/tmp}/said.XXXXXX")
told=$(mktemp "${ARCUS_TMP:-/tmp}/told.XXXXXX")
"$@" 2>"$said" | tee "$told"
status=${PIPESTATUS[0]}
[ "$status" = 0 ] || {
    echo "# $*: exit code $status"
    tail -n 200 "$said"
    grep -B 6 -A 14 '^not ok' "$told" | head -n 150
} >&2
rm -f "$said" "$told"
exit "$status"
