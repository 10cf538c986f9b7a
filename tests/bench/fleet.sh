#!/usr/bin/env bash
# fleet.sh [NODES [TASKS [SECONDS]]] - what a fleet of simulated nodes over TLS costs the server, on this machine.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
B=${ARCUS_BIN:-build} BENCH=${ARCUS_BENCH:-build/bench-fleet} nodes=${1:-10000} tasks=${2:-100000} seconds=${3:-60}
TMP=$(mktemp -d /tmp/arcus-fleet.XXXXXX)
trap 'kill $(jobs -p) 2>/dev/null || true; sleep 0.5; rm -rf "$TMP"' EXIT
ulimit -n "$(ulimit -Hn)"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench -addext 'subjectAltName = IP:127.0.0.1' \
    -keyout "$TMP/key.pem" -out "$TMP/cert.pem" 2>/dev/null
most=$((nodes + 1000))
"$B/arcus" server --data "$TMP/data" --listen 127.0.0.1:0 --tls-cert "$TMP/cert.pem" --tls-key "$TMP/key.pem" \
    --connections "$most" --connections-per-address "$most" ${SERVER_FLAGS:-} >"$TMP/log" 2>&1 &
server=$!
for _ in $(seq 100); do [ -s "$TMP/data/address" ] && break; sleep 0.05; done
"$BENCH" "$(cat "$TMP/data/address")" "$TMP/cert.pem" "$(cat "$TMP/data/admin.key")" "$nodes" "$tasks" "$seconds" "$server" || { tail -n 5 "$TMP/log"; exit 1; }
