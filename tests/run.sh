#!/usr/bin/env bash
# run.sh - all tests through prove(1): unit tests, replayed fuzz corpora, the simulated cluster, and the flows (on SQLite, then again
# on PostgreSQL). Ends with a line that counts them. With names, only the files that have one of them in their path.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
B=build/test
TMP=$(mktemp -d /tmp/arcus-test.XXXXXX)
chmod 755 "$TMP"
cleanup() {
    tests/pg_start.sh --stop "$TMP/pg" >/dev/null 2>&1
    if [ -n "${FLOW_KEEP:-}" ]; then echo "kept: $TMP" >&2; else rm -rf "$TMP"; fi
}
trap cleanup EXIT
export ARCUS=$PWD/$B/arcus ARCUS_TMP=$TMP
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=print_suppressions=0
ARCUS_TEST_POSTGRES=$(tests/pg_start.sh "$TMP/pg") || { echo "PostgreSQL does not start" >&2; exit 1; }
export ARCUS_TEST_POSTGRES

wanted() { # wanted FILE PATTERNS...: no pattern wants all, but what ARCUS_TEST_WITHOUT names
    local file=$1; shift
    [ -z "${ARCUS_TEST_WITHOUT:-}" ] || case "$file" in *"$ARCUS_TEST_WITHOUT"*) return 1 ;; esac
    [ $# -eq 0 ] && return 0
    for p in "$@"; do case "$file" in *"$p"*) return 0 ;; esac; done
    return 1
}
files=()
for f in "$B"/test-* "$B"/fuzz-*; do [ -f "$f" ] && [ -x "$f" ] && wanted "$f" "$@" && files+=("$f"); done
flows=$(ls -r tests/flow/*.t tests/flow/hostile/*.t)     # the long ones have high numbers: begun first, they do not end alone
for f in $flows; do wanted "$f" "$@" && files+=("$f"); done
[ ${#files[@]} -gt 0 ] || { echo "no test file has '$*' in its name" >&2; exit 1; }

# three at once on two cores: many of them wait most of the time
log=$TMP/prove.log
prove --timer -j3 -e tests/one.sh "${files[@]}" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
pg_files=()
for f in $flows; do grep -q '^# also on PostgreSQL' "$f" && wanted "$f" "$@" && pg_files+=("$f"); done
if [ ${#pg_files[@]} -gt 0 ]; then
    echo "== the flows again, on PostgreSQL"
    ARCUS_FLOW_STORE=$ARCUS_TEST_POSTGRES prove --timer -j3 -e tests/one.sh "${pg_files[@]}" 2>&1 | tee -a "$log"
    s=${PIPESTATUS[0]}
    [ "$s" = 0 ] || status=$s
fi
total=$(grep -o 'Tests=[0-9]*' "$log" | cut -d= -f2 | awk '{n += $1} END {print n + 0}')
failed=$(grep -oE 'Failed: [0-9]+' "$log" | awk '{n += $2} END {print n + 0}')
[ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "$((total - failed)) passed, $failed failed"
exit "$status"
