#!/usr/bin/env bash
# run.sh - every benchmark, each beside a peer or a floor in the same run. Figures move with the machine: compare ratios, repeat.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
B=build
TMP=$(mktemp -d /tmp/arcus-bench.XXXXXX)
chmod 755 "$TMP"                       # the root of a container is somebody else here, and must reach its files
pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; sleep 0.5; rm -rf "$TMP"; }
trap cleanup EXIT
seconds=${BENCH_SECONDS:-5}
runs=${BENCH_RUNS:-3}
rate() { awk '/Requests\/sec/ {print int($2)}'; }

start_server() { # start_server NAME ARGS...: sets URL and KEY
    local data=$TMP/$1; shift
    "$B/arcus" "$@" --data "$data" --listen 127.0.0.1:0 >"$data.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do [ -s "$data/address" ] && break; sleep 0.05; done
    URL=$(cat "$data/address") KEY=$(cat "$data/admin.key")
}

echo "== HTTP: requests a second on loopback, 64 connections, ours and nginx in turn"
mkdir -p "$TMP/nginx"
cat >"$TMP/nginx/nginx.conf" <<EOF
worker_processes 1; daemon off; pid $TMP/nginx/pid; error_log $TMP/nginx/error.log;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path $TMP/nginx/b; proxy_temp_path $TMP/nginx/p; fastcgi_temp_path $TMP/nginx/f; uwsgi_temp_path $TMP/nginx/u; scgi_temp_path $TMP/nginx/s;
  keepalive_requests 1000000; server { listen 127.0.0.1:6691; location / { default_type application/json; return 200 '{"status":"ready"}'; } } }
EOF
nginx -c "$TMP/nginx/nginx.conf" >/dev/null 2>&1 &
pids+=($!)
start_server http server
sleep 0.5
for _ in $(seq "$runs"); do
    a=$(wrk -t1 -c64 -d"$seconds" "$URL/healthz" | rate)
    b=$(wrk -t1 -c64 -d"$seconds" http://127.0.0.1:6691/ | rate)
    echo "arcus /healthz $a   nginx $b   ratio $(awk "BEGIN {printf \"%.2f\", $a / $b}")"
done

tests/bench/submits.sh

echo "== submit to first instruction, and to the end, of a container on this machine"
start_server cloud up --run "/run/arcus-bench-$$" --name bench
export ARCUS_CONFIG=$TMP/config
"$B/arcus" config set bench --server "$URL" --key "$KEY" >/dev/null
for _ in $(seq 100); do "$B/arcus" nodes -o json | grep -q '"state": "ready"' && break; sleep 0.1; done
sleep 1
for _ in $(seq 20); do
    t0=$(date +%s%N)
    t1=$("$B/arcus" run --cpus 1 --memory 256MB -- date +%s%N 2>/dev/null | tail -1)
    t2=$(date +%s%N)
    echo "$(((t1 - t0) / 1000)) $(((t2 - t0) / 1000))"
done | sort -n | awk '{a[NR] = $1; b[NR] = $2} END {print "first instruction: median " a[int((NR + 1) / 2)] / 1000 " ms, worst " a[NR] / 1000 " ms; whole `arcus run`: median " b[int((NR + 1) / 2)] / 1000 " ms"}'
