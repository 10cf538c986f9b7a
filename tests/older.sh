#!/usr/bin/env bash
# older.sh [COMMIT...] - builds earlier versions out of the history (the one before the schema changed last) and lets each be replaced by this
# one and come back, server by server under load: flow 36 with HEADS_OLD. Not in CI, which has no history and no time.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
: "${ARCUS:=$PWD/build/test/arcus}"
[ $# -gt 0 ] || set -- "$(git log -1 --format=%h -- src/store/schema.h)^"
failed=0
for commit in "$@"; do
    name=$(git rev-parse --short "$commit^{commit}") || exit 1
    dir=$PWD/build/older/$name
    if [ ! -x "$dir/build/arcus" ]; then
        mkdir -p "$dir" && git archive "$name" | tar -x -C "$dir" && make -s -C "$dir" -j"$(nproc)" build/arcus >"$dir.log" 2>&1 ||
            { echo "older: $name does not build: $(tail -n 3 "$dir.log" | tr '\n' ' ')" >&2; exit 1; }
    fi
    echo "# $name, $(git show "$name:src/store/schema.h" | grep -c 'X("') schema steps, beside this version with $(grep -c 'X("' src/store/schema.h)"
    ARCUS=$ARCUS HEADS_OLD=$dir/build/arcus HEADS_FAULTS=replace bash tests/flow/36-failover.t || failed=1
done
exit $failed
