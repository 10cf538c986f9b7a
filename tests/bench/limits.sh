#!/usr/bin/env bash
# limits.sh - one tenant's requests beside a thousand connections of another, what idle connections weigh, and what a flood makes of memory.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
B=${ARCUS_BIN:-build}
TMP=$(mktemp -d /tmp/arcus-bench.XXXXXX)
pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null && kill -CONT "$p" || true; done; sleep 0.5; rm -rf "$TMP"; }
trap cleanup EXIT
ulimit -n "$(ulimit -Hn)"
seconds=${BENCH_SECONDS:-2}
rounds=${BENCH_RUNS:-7}

start_server() { # start_server NAME FLAGS...: sets URL, KEY and SERVER
    local data=$TMP/$1; shift
    "$B/arcus" server --data "$data" --listen 127.0.0.1:0 --default-image host "$@" >"$data.log" 2>&1 &
    SERVER=$!
    pids+=("$SERVER")
    for _ in $(seq 100); do [ -s "$data/address" ] && break; sleep 0.05; done
    URL=$(cat "$data/address") KEY=$(cat "$data/admin.key")
}
call() { curl -sk -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -X "$1" "$URL$2" --data-binary "$3"; }
tenant() { # tenant NAME PROJECT: a developer's key
    call POST /v1/projects "{\"name\":\"$2\"}" >/dev/null
    call POST /v1/users "{\"name\":\"$1\",\"password\":\"password of $1\"}" >/dev/null
    call PUT "/v1/members/$1?project=$2" '{"roles":"developer"}' >/dev/null
    call POST /v1/login "{\"user\":\"$1\",\"password\":\"password of $1\"}" | jq -r .key
}
says() { tr ' ' '\n' <"$1" | awk -F= -v n="$2" '$1 == n {print $2}'; }    # says FILE NAME
anon() { awk '/^RssAnon/ {print $2}' "/proc/$SERVER/status"; }

# The server's fairness is what counts here, not the kernel's between our own programs: so B's client goes first, and A's goes last.
first() { if chrt -f 1 true 2>/dev/null; then chrt -f 1 "$@"; else nice -n -20 "$@" 2>/dev/null || "$@"; fi; }
echo "== fairness: p99 of tenant B (16 connections, ms), alone and beside tenant A with 1,000 connections, in turn, $rounds times $seconds s each"
start_server fair
A=$(tenant alice red) BOB=$(tenant bob blue)
job=(-m POST -b '{"command":["true"]}')
beside() { # beside WHAT B's-ARGUMENTS -- A's
    local what=$1 b=() noise; shift
    [[ "$what" == *${ONLY:-}* ]] || return 0
    while [ "$1" != -- ]; do b+=("$1"); shift; done
    shift
    nice -n 10 "$B/bench-load" -k "$A" -c 1000 -t 3600 "$@" >"$TMP/a" & noise=$!
    pids+=("$noise")
    sleep 1.5
    first "$B/bench-load" -k "$BOB" -c 16 -p "$noise" -o "$rounds" -w 1.3 -t "$seconds" "${b[@]}" >"$TMP/b"
    kill -CONT "$noise" && kill "$noise"
    echo "$what: alone $(ms alone_p99), beside $(ms beside_p99), ratio $(says "$TMP/b" ratio) ($(says "$TMP/b" least) to $(says "$TMP/b" most)," \
        "of all $(says "$TMP/b" pooled)); medians $(ms alone_p50) and $(ms beside_p50); B $(says "$TMP/b" alone_count) and $(says "$TMP/b" beside_count)"
}
ms() { awk "BEGIN {printf \"%.2f ms\", $(says "$TMP/b" "$1") / 1000}"; }
beside "submits beside submits" "${job[@]}" "$URL/v1/jobs" -- "${job[@]}" "$URL/v1/jobs"
beside "200 submits a second beside submits" -r 200 "${job[@]}" "$URL/v1/jobs" -- "${job[@]}" "$URL/v1/jobs"
beside "200 reads a second beside reads" -r 200 "$URL/v1/jobs?limit=5" -- "$URL/v1/jobs?limit=5"
beside "200 of both a second beside both" -r 200 "${job[@]}" -g '/v1/jobs?limit=5' "$URL/v1/jobs" -- "${job[@]}" -g '/v1/jobs?limit=5' "$URL/v1/jobs"
beside "200 reads a second beside cheap pages" -r 200 "$URL/v1/whoami" -- "$URL/healthz"
kill "$SERVER"
[ -z "${ONLY:-}" ] || exit 0

echo "== idle connections: bytes of the server's memory for each of 5,000 that have made one request and are kept alive"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$TMP/key.pem" -out "$TMP/cert.pem" -days 2 -subj /CN=localhost 2>/dev/null
for tls in "" "--tls-cert $TMP/cert.pem --tls-key $TMP/key.pem"; do
    # shellcheck disable=SC2086
    start_server "idle${#tls}" --connections-per-address 6000 $tls
    before=$(anon)
    "$B/bench-load" -k "$KEY" -c 5000 -n 1 -t 30 -w 0 "$URL/v1/whoami" >"$TMP/idle" & holder=$!
    for _ in $(seq 100); do sleep 0.25; after=$(anon); done
    wait "$holder"
    echo "${tls:+TLS, }$(says "$TMP/idle" open) open: $(((after - before) * 1024 / 5000)) bytes each"
    kill "$SERVER"
done

echo "== a flood: half requests, endless heads, unread replies and events, large bodies, garbage; 2,000 connections"
start_server flooded --connections-per-address 6000
A=$(tenant alice red) BOB=$(tenant bob blue)
before=$(anon)
perl tests/flood.pl "${URL#http://}" "$A" "$((seconds + 5))" half=400 head=100 pipeline=400 body=400 follow=200 garbage=100 idle=400 >"$TMP/flood" & noise=$!
sleep 2
"$B/bench-load" -k "$BOB" -c 16 -r 200 -t "$seconds" "${job[@]}" "$URL/v1/jobs" >"$TMP/beside"
after=$(anon)
wait "$noise"
count=0 next=null
while :; do     # every job that was acknowledged is there
    page=$(curl -s -H "Authorization: Bearer $BOB" "$URL/v1/jobs?all=true&limit=1000$([ "$next" = null ] || echo "&page=$next")")
    count=$((count + $(jq '.items | length' <<<"$page"))) next=$(jq -r '.next' <<<"$page")
    [ "$next" = null ] && break
done
echo "memory $((before / 1024)) -> $((after / 1024)) MiB, at most $(awk '/^VmHWM/ {print int($2 / 1024)}' "/proc/$SERVER/status") MiB; a tenant beside it: $(cat "$TMP/beside")"
echo "jobs in the store: $count; the flood: $(cat "$TMP/flood")"
