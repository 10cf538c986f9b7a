#!/usr/bin/env bash
# soak.sh - the long runs, in parts that can be run and repeated by themselves. Every run of a part leaves one line per seed or row of
# seeds in build/soak/table, in place of what that part had there before; at the end the table is printed. What a part said is kept
# in build/soak/PART.log.
#
#   tests                  all tests but the kills, with every n-th operation instead of some, and more seeds (sanitized)
#   kills                  ARCUS_KILLS (200) kills of a mixed load on SQLite, and as many on PostgreSQL; ARCUS_KILLS_SEED
#   sim, heads             the simulated cloud with one server and with several: ARCUS_SIM_SEEDS (30000; half of it for several)
#                          seeds from ARCUS_SIM_FIRST (10001) on, in steps of 1,000
#   older                  earlier versions (ARCUS_OLDER; the one before the schema changed last) beside this one: tests/older.sh
#   fuzz                   libFuzzer on every parser, FUZZ_SECONDS (60) each
#   table                  only prints what there is
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
PARTS=(tests kills sim heads older fuzz)
OUT=$PWD/build/soak TABLE=$PWD/build/soak/table
COMMIT=$(git rev-parse --short HEAD 2>/dev/null || echo '-')
mkdir -p "$OUT"
HERE=$(mktemp -d /tmp/arcus-soak.XXXXXX)        # short, as the paths of sockets must be
chmod 755 "$HERE"
trap 'rmdir "$HERE" 2>/dev/null' EXIT
touch "$TABLE"
bad=0

say() { printf '== %s\n' "$*" >&2; }
begin() { # begin PART: its rows of before go
    PART=$1 BEGAN=$SECONDS
    say "$PART"
    { grep -v "^$PART	" "$TABLE" || true; } >"$TABLE.new" && mv "$TABLE.new" "$TABLE"
    : >"$OUT/$PART.log"
}
row() { # row SEEDS COUNTS GOOD: of this part; GOOD 0 is good
    local how=good
    [ "$3" = 0 ] || { how=FAILED; bad=1; }
    printf '%s\t%s\t%s\t%s\t%d\t%s\n' "$PART" "$1" "$how" "$2" $((SECONDS - BEGAN)) "$COMMIT" >>"$TABLE"
    say "$PART: $1: $how: $2 ($((SECONDS - BEGAN)) s)"
    BEGAN=$SECONDS
}
# watched COMMAND...: what it says goes to the part's log; on a terminal its last line shows meanwhile.
watched() {
    "$@" >>"$OUT/$PART.log" 2>&1 &
    local pid=$! shown=
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        [ -t 2 ] || continue
        shown=$(tail -n 1 "$OUT/$PART.log" | tr -d '\r' | cut -c 1-$(($(tput cols 2>/dev/null || echo 80) - 8)))
        printf '\r\033[K%4ds %s' $((SECONDS - BEGAN)) "$shown" >&2
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
    trap - INT TERM
    wait "$pid"
}
log_tail() { [ "$1" = 0 ] || { grep -E '^(not ok|#)' "$OUT/$PART.log" | tail -n 15 >&2; say "all it said: $OUT/$PART.log"; }; }

part_tests() {
    begin tests
    ARCUS_SOAK=1 ARCUS_TEST_WITHOUT=32-kills watched tests/run.sh
    local code=$?
    log_tail $code
    row "seeds 1 to 3000, of several servers 1 to 1500" "$(tail -n 1 "$OUT/tests.log")" $code
}

kills_on() { # kills_on STORE
    local code from counts
    from=$(wc -l <"$OUT/kills.log")
    ARCUS_TMP=$HERE ARCUS=$PWD/build/test/arcus ARCUS_SOAK=1 watched tests/flow/32-kills.t
    code=$?
    counts=$(tail -n "+$((from + 1))" "$OUT/kills.log" | sed -nE 's/^# ([0-9]+ (kills|jobs ack).*)/\1/p' | paste -sd ';' | sed 's/;/; /g')
    log_tail $code
    row "$1: $(tail -n "+$((from + 1))" "$OUT/kills.log" | sed -nE 's/^# (seed [0-9]+);.*/\1/p')" "${counts:-nothing was counted}" $code
}
part_kills() {
    begin kills
    kills_on SQLite
    ARCUS_FLOW_STORE=own kills_on PostgreSQL
}

# The storm of seeds FIRST to LAST, a thousand at a time; what is done stays done when it is interrupted.
storms() { # storms PART TEST SEEDS TIMES: TIMES of ARCUS_SIM_SEEDS are one seed of this test
    local first=${ARCUS_SIM_FIRST:-10001} left=$3 step code=0 at
    begin "$1"
    at=$first
    while [ "$left" -gt 0 ] && [ $code = 0 ]; do
        step=$((left < 1000 ? left : 1000))
        TAP_ONLY=$2 ARCUS_SIM_FIRST=$at ARCUS_SIM_SEEDS=$((step * $4)) watched "$OUT/test-sim"
        code=$?
        at=$((at + step)) left=$((left - step))
        [ -t 2 ] || say "$1: seeds $first to $((at - 1))"
    done
    log_tail $code
    row "seeds $first to $((at - 1))" "$(sed -nE 's/^# [0-9]+ seeds[^:]*: ([0-9]+) requests, ([0-9]+) attempts, ([0-9]+) commits, ([0-9]+) checks, ([0-9]+) s of.*/\1 \2 \3 \4 \5/p' "$OUT/$1.log" |
        awk '{r += $1; a += $2; c += $3; k += $4; s += $5} END {printf "%d requests, %d attempts, %d commits, %d checks, %d h of virtual time", r, a, c, k, s / 3600}')" $code
}
part_sim() { storms sim befalls_the_cloud "${ARCUS_SIM_SEEDS:-30000}" 1; }
part_heads() { storms heads of_several_servers $((${ARCUS_SIM_SEEDS:-30000} / 2)) 2; }

part_older() {
    begin older
    # shellcheck disable=SC2086
    ARCUS_TMP=$HERE ARCUS=$PWD/build/test/arcus watched tests/older.sh ${ARCUS_OLDER:-}
    local code=$?
    log_tail $code
    row "$(sed -nE 's/^# ([0-9a-f]+), ([0-9]+) schema steps.*/\1 (step \2)/p' "$OUT/older.log" | paste -sd ' ')" \
        "$(sed -nE 's/^# ((next|back): of .*)/\1/p; s/^# ([0-9]+ submits.*)/\1/p' "$OUT/older.log" | paste -sd ';' | sed 's/;/; /g')" $code
}

part_fuzz() {
    local target code
    begin fuzz
    for target in $(make -s fuzz-names); do
        watched make -s CC=clang BUILD=build/fuzzing "fuzz-run-$target" FUZZ_SECONDS="${FUZZ_SECONDS:-60}"
        code=$?
        log_tail $code
        row "$target" "$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)/\1 inputs tried/p' "$OUT/fuzz.log" | tail -n 1)" $code
    done
}

table() {
    awk -F '\t' 'BEGIN {f = "%-6s %-44s %-7s %7s  %-9s %s\n"; printf f, "part", "seeds", "", "time", "commit", "counts"}
        {printf f, $1, $2, $3, ($5 >= 120 ? int($5 / 60) " min" : $5 " s"), $6, $4}' "$TABLE"
    grep -q '	FAILED	' "$TABLE" && return 1
    return 0
}

[ $# -gt 0 ] || set -- "${PARTS[@]}"
for part in "$@"; do
    case " ${PARTS[*]} table " in *" $part "*) ;; *) echo "soak: there is no part '$part'; there are: ${PARTS[*]} table" >&2; exit 2 ;; esac
done
for part in "$@"; do [ "$part" = table ] || "part_$part"; done
table || bad=1
exit $bad
