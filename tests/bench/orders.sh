#!/usr/bin/env bash
# orders.sh - placements through the door, on both stores, beside the same commits put into the store alone. BENCH_RUNS: how often.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
B=${ARCUS_BIN:-build}
TMP=$(mktemp -d /tmp/arcus-orders.XXXXXX)
chmod 755 "$TMP"
trap 'tests/pg_start.sh --stop "$TMP/pg" >/dev/null 2>&1 || true; rm -rf "$TMP"' EXIT
for run in $(seq "${BENCH_RUNS:-3}"); do
    echo "sqlite: $("$B/bench-orders" "$TMP/$run" "$TMP/$run.db" "$TMP/$run.floor" "$@")"
done
PG=$(PG_DURABLE=1 tests/pg_start.sh "$TMP/pg" 2>/dev/null) || exit 0
for run in $(seq "${BENCH_RUNS:-3}"); do
    places=()
    for name in "orders$run" "floor$run"; do
        psql "$PG" -qc "CREATE DATABASE $name" >/dev/null
        places+=("$(sed -E "s|/[^/?]*(\?.*)?$|/$name\1|" <<<"$PG")")
    done
    psql "$PG" -qc CHECKPOINT >/dev/null
    echo "postgres: $("$B/bench-orders" "$TMP/pg$run" "${places[@]}" "$@")"
done
