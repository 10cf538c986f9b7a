#!/usr/bin/env bash
# shake.sh FILE [TIMES] - runs one test file again and again while random processes of it are stopped for 50 to 300 ms at random
# moments: a loaded machine does the same, so nothing may fail by it. What fails shows a race, in the program or in the test.
#
# SHAKE_SEED replays a choice (as far as the machine does), SHAKE_ONLY='arcus agent' stops only processes whose arguments match,
# SHAKE_BURN=6 burns CPU beside it, SHAKE_MS is the longest stop. Only the test's own processes are touched: its children and those
# that have its folder in their arguments, and what these have started.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
FILE=${1:?usage: tests/shake.sh FILE [TIMES]} TIMES=${2:-5} SEED=${SHAKE_SEED:-$RANDOM} failed=0 stopped=() burners=()
TMP=$(mktemp -d /tmp/arcus-shake.XXXXXX)
chmod 755 "$TMP"
case $FILE in /*) ;; *) FILE=$PWD/$FILE ;; esac
cleanup() {
    [ ${#stopped[@]} = 0 ] || kill -CONT "${stopped[@]}" 2>/dev/null
    [ ${#burners[@]} = 0 ] || kill "${burners[@]}" 2>/dev/null
    [ -z "${SHAKE_PG:-}" ] || tests/pg_start.sh --stop "$TMP/pg" >/dev/null 2>&1
    if [ -n "${FLOW_KEEP:-}" ]; then echo "kept: $TMP"; else rm -rf --one-file-system "$TMP"; fi
}
trap cleanup EXIT
trap 'exit 1' INT TERM
export ARCUS=${ARCUS:-$PWD/build/test/arcus} ARCUS_TMP=$TMP LSAN_OPTIONS=print_suppressions=0
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
if [ -n "${SHAKE_PG:-}" ]; then
    ARCUS_TEST_POSTGRES=$(tests/pg_start.sh "$TMP/pg") || exit 1
    export ARCUS_TEST_POSTGRES ARCUS_FLOW_STORE=$ARCUS_TEST_POSTGRES
fi

# mine TEST: the numbers of its processes; not those that are stopped already, which the test itself has done, nor what script(1) has
# begun, which stops itself and everybody with its child
mine() {
    ps -eo pid=,ppid=,stat=,args= | awk -v root="$1" -v tmp="$TMP/" -v only="${SHAKE_ONLY:-.}" '
        { up[$1] = $2; stat[$1] = $3; $2 = $3 = ""; args[$1] = $0; if ($1 == root || index($0, tmp)) own[$1] = 1 }
        END {
            for (p in up) {
                for (q = p; q + 0 > 1 && !(q in own); ) q = up[q]
                if (q + 0 > 1 && stat[p] !~ /^[TtZ]/ && args[p] ~ only && args[p] !~ /postgres|pg_start/ && args[up[p]] !~ /^[0-9]+ +script /) print p
            }
        }'
}
nap() { sleep "$(printf '0.%03d' "$1")"; }

for ((n = 1; n <= TIMES; n++)); do
    RANDOM=$((SEED + n))
    tests/one.sh "$FILE" >"$TMP/out" 2>&1 &
    test=$!
    for ((b = 0; b < ${SHAKE_BURN:-0}; b++)); do timeout 300 sh -c 'while :; do :; done' & burners+=($!); done
    while kill -0 $test 2>/dev/null; do
        mapfile -t all < <(mine $test)
        stopped=()
        for ((i = RANDOM % 3; i >= 0 && ${#all[@]} > 0; i--)); do stopped+=("${all[RANDOM % ${#all[@]}]}"); done
        [ ${#stopped[@]} = 0 ] || kill -STOP "${stopped[@]}" 2>/dev/null
        nap $((50 + RANDOM % (${SHAKE_MS:-300} - 49)))
        [ ${#stopped[@]} = 0 ] || kill -CONT "${stopped[@]}" 2>/dev/null
        nap $((RANDOM % 200))
    done
    wait $test
    code=$?
    stopped=()
    [ ${#burners[@]} = 0 ] || kill "${burners[@]}" 2>/dev/null
    burners=()
    if [ $code = 0 ]; then echo "ok $n - $1, seed $((SEED + n))"; else
        failed=$((failed + 1))
        echo "not ok $n - $1, seed $((SEED + n)), code $code"
        grep -A 12 '^not ok' "$TMP/out" || tail -n 40 "$TMP/out"
        cp "$TMP/out" "${SHAKE_OUT:-/tmp}/shake-$(basename "$1").$((SEED + n)).out"
    fi
done
echo "$failed of $TIMES failed"
exit $((failed > 0))
