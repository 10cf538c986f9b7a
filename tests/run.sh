#!/usr/bin/env bash
# run.sh - all tests through prove(1): unit tests, replayed fuzz corpora, the simulated cluster, and the flows (on SQLite, then again
# on PostgreSQL). Ends with a line that counts them. With names, only the files that have one of them in their path.
# ARCUS_TEST_AGAIN=N: up to N files that fail are run once more, alone; the last lines name them. A race is a bug, but not a reason to stop the
# other four thousand checks from saying what they found.
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

log=$TMP/prove.log status=0 again=()
run_files() { # three at once on two cores: many of them wait most of the time
    local out=$TMP/prove.one s bad
    prove --timer -j3 -e tests/one.sh "$@" 2>&1 | tee "$out"
    s=${PIPESTATUS[0]}
    mapfile -t bad < <(sed -nE 's/^(\S+) +\(Wstat: .*/\1/p' "$out")
    if [ "$s" != 0 ] && [ ${#bad[@]} -gt 0 ] && [ $((${#again[@]} + ${#bad[@]})) -le "${ARCUS_TEST_AGAIN:-0}" ]; then
        echo "== once more, alone: ${bad[*]}"
        again+=("${bad[@]}")
        prove --timer -e tests/one.sh "${bad[@]}" 2>&1 | tee "$out.again"
        s=${PIPESTATUS[0]}
        sed -i -E '/^\S+ +\(Wstat: /d' "$out"                      # what counts is how they ended the second time
        sed -i -E 's/^Files=.*//' "$out.again"                       # ... but they were counted before
        cat "$out.again" >>"$out"
    fi
    cat "$out" >>"$log"
    [ "$s" = 0 ] || status=$s
}
run_files "${files[@]}"
pg_files=()
for f in $flows; do grep -q '^# also on PostgreSQL' "$f" && wanted "$f" "$@" && pg_files+=("$f"); done
if [ ${#pg_files[@]} -gt 0 ]; then
    echo "== the flows again, on PostgreSQL"
    export ARCUS_FLOW_STORE=$ARCUS_TEST_POSTGRES
    run_files "${pg_files[@]}"
fi
total=$(grep -o 'Tests=[0-9]*' "$log" | cut -d= -f2 | awk '{n += $1} END {print n + 0}')
failed=$(grep -oE 'Failed: [0-9]+' "$log" | awk '{n += $2} END {print n + 0}')
[ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
[ ${#again[@]} = 0 ] || echo "failed the first time, look above and mend it: ${again[*]}"
echo "$((total - failed)) passed, $failed failed"
exit "$status"
