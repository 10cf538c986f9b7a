#!/usr/bin/env bash
# submits.sh - the figures of the server alone: durable submits on both stores beside the store itself, etcd and Slurm; arrays and
# batches; starting; idling. Floor and figure are measured in turn, so that both see the same machine; a peer that is not installed is left out.
# The floor is fair: the two rows of a submit as the server writes them, through the same code, into the same schema with the same indexes, on the same
# database with the same settings (fsync on), each from an empty store and, on PostgreSQL, behind a checkpoint, so that neither pays for what was before.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
PATH=$PATH:/usr/sbin:/sbin
. tests/bench/slurm.sh
B=build
TMP=$(mktemp -d /tmp/arcus-bench.XXXXXX)
chmod 755 "$TMP"
pids=()
cleanup() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    stop_slurm
    tests/pg_start.sh --stop "$TMP/pg" >/dev/null 2>&1 || true
    sleep 0.5
    rm -rf "$TMP"
}
trap cleanup EXIT
seconds=${BENCH_SECONDS:-5}
runs=${BENCH_RUNS:-3}
have() { command -v "$1" >/dev/null; }
says() { tr ' ' '\n' <"$1" | awk -F= -v n="$2" '$1 == n {print $2}'; }    # says FILE NAME
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", b ? a / b : 0}'; }
wait_for() { for _ in $(seq 200); do [ -s "$1" ] && return; sleep 0.05; done; return 1; }

start_server() { # start_server NAME ARGS...: sets URL, KEY and SERVER
    local data=$TMP/$1; shift
    "$B/arcus" server --data "$data" --listen 127.0.0.1:0 --default-image host --rate-key 0 --rate-address 0 "$@" >"$data.log" 2>&1 &
    SERVER=$!
    pids+=("$SERVER")
    wait_for "$data/address"
    URL=$(cat "$data/address") KEY=$(cat "$data/admin.key")
}
stop_server() { kill "$SERVER"; wait "$SERVER" 2>/dev/null || true; }
post() { curl -sS -o "$TMP/reply" -w '%{http_code} %{time_total}' -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$URL$1" --data-binary "$2"; }

fresh_store() { # fresh_store KIND: sets PLACE
    PLACE=$TMP/rows.db
    if [ "$1" = sqlite ]; then rm -f "$PLACE"*; return; fi
    psql "$PG" -qc 'SET client_min_messages = error; DROP SCHEMA public CASCADE; CREATE SCHEMA public' >/dev/null
    psql "$PG" -qc CHECKPOINT >/dev/null
    PLACE=$PG
}

stores=(sqlite)
if PG=$(PG_DURABLE=1 tests/pg_start.sh "$TMP/pg" 2>/dev/null); then stores+=(postgres); fi

for store in "${stores[@]}"; do
    echo "== durable submits on $store: one job a request, 64 connections; the floor is the store alone with the same rows, 64 submits a commit"
    for _ in $(seq "$runs"); do
        fresh_store "$store"
        floor=$("$B/bench-store_rows" -s 64 "$seconds" "$PLACE")
        fresh_store "$store"
        [ "$store" = sqlite ] && PLACE=$TMP/submit.db && rm -f "$TMP"/submit.db* && rm -rf "$TMP/submit"
        rm -rf "$TMP/submit"
        start_server submit --store "$PLACE"
        "$B/bench-load" "$URL/v1/jobs" -c 64 -t "$seconds" -w 2 -k "$KEY" -m POST -b '{"command":["true"]}' >"$TMP/out"
        [ "$(says "$TMP/out" failed)$(says "$TMP/out" other)" = 00 ] || cat "$TMP/out"
        echo "$store: $(says "$TMP/out" rate) submits a second, p99 $(says "$TMP/out" p99) us; floor $floor; ratio $(ratio "$(says "$TMP/out" rate)" "$floor")"
        stop_server
    done
    echo "== on $store: a batch of 10,000 different jobs in one request, and an array of 10,000"
    jq -nc '{jobs: [range(10000) | {name: "j\(.)", command: ["true", "\(.)"]}]}' >"$TMP/batch.json"
    for _ in $(seq "$runs"); do
        fresh_store "$store"
        floor=$("$B/bench-store_rows" -s 10000 "$seconds" "$PLACE")
        fresh_store "$store"
        [ "$store" = sqlite ] && PLACE=$TMP/submit.db && rm -f "$TMP"/submit.db*
        rm -rf "$TMP/submit"
        start_server submit --store "$PLACE"
        post /v1/jobs '{"command":["true"]}' >/dev/null
        sleep 0.5
        post /v1/jobs/batch @"$TMP/batch.json" >/dev/null           # the first makes the files grow
        sleep 1
        batch=$(post /v1/jobs/batch @"$TMP/batch.json")
        sleep 1
        array=$(post /v1/jobs '{"command":["true"],"count":10000}')
        took=${batch#* }
        echo "$store: batch ${batch% *} in $took s, $(awk -v t="$took" 'BEGIN {print int(10000 / t)}') jobs a second; floor $floor; ratio $(awk -v t="$took" -v f="$floor" 'BEGIN {printf "%.2f", 10000 / t / f}'); array ${array% *} in ${array#* } s"
        stop_server
    done
done

if have etcd; then
    echo "== etcd: durable puts of 300 bytes, 64 connections, through its HTTP gateway"
    etcd --data-dir "$TMP/etcd" --listen-client-urls http://127.0.0.1:6692 --advertise-client-urls http://127.0.0.1:6692 \
        --listen-peer-urls http://127.0.0.1:6693 --initial-advertise-peer-urls http://127.0.0.1:6693 --initial-cluster default=http://127.0.0.1:6693 >"$TMP/etcd.log" 2>&1 &
    ETCD=$!
    pids+=("$ETCD")
    for _ in $(seq 100); do curl -fsS -o /dev/null http://127.0.0.1:6692/health 2>/dev/null && break; sleep 0.1; done
    value=$(head -c 300 /dev/zero | base64 -w0)
    for _ in $(seq "$runs"); do
        "$B/bench-load" http://127.0.0.1:6692/v3/kv/put -c 64 -t "$seconds" -w 1 -m POST -b "{\"key\":\"Zm9v\",\"value\":\"$value\"}" >"$TMP/out"
        echo "etcd: $(says "$TMP/out" rate) puts a second, p99 $(says "$TMP/out" p99) us"
    done
    kill "$ETCD"; wait "$ETCD" 2>/dev/null || true
fi

if have slurmctld && have munged; then
    echo "== Slurm: batch jobs, through its library and through sbatch; they wait, as ours do, because no node is up; and held ones"
    if [ -e /usr/include/slurm/slurm.h ]; then
        cc -O2 -w -o "$TMP/slurm_submit" tests/bench/peers/slurm_submit.c -lslurm
        start_slurm 1 2 "NodeName=n[2-1000] NodeAddr=127.0.0.1 CPUs=64 RealMemory=100000 Gres=gpu:8 State=UNKNOWN" || true   # which are never heard of
        for at_once in 64 8; do
            for _ in $(seq "$runs"); do echo "slurm, 1,000 nodes, library, $at_once at a time: $("$TMP/slurm_submit" "$at_once" "$seconds") submits a second"; done
        done
        stop_slurm
        sleep 3
        rm -rf "$TMP/slurm" "$TMP/munge"
    fi
    if start_slurm 1 2; then
        if [ -x "$TMP/slurm_submit" ]; then
            scontrol update NodeName=bench1 State=DOWN Reason=bench
            for at_once in 64 8; do
                for _ in $(seq "$runs"); do echo "slurm, one node, library, $at_once at a time: $("$TMP/slurm_submit" "$at_once" "$seconds") submits a second"; done
            done
            for _ in $(seq "$runs"); do echo "slurm, one node, library, 8 at a time, held: $("$TMP/slurm_submit" 8 "$seconds" held) submits a second"; done
        fi
        printf '#!/bin/sh\ntrue\n' >"$TMP/job.sh"
        count=$((seconds * 40))
        t0=$(date +%s%N)
        seq "$count" | xargs -P8 -I{} sbatch -Q -D /tmp -o /dev/null "$TMP/job.sh" >/dev/null
        echo "slurm, sbatch: $(($count * 1000000000 / ($(date +%s%N) - t0))) submits a second"
    else
        echo "slurm does not start here: $(tail -n 1 "$TMP/slurm/slurmctld.log")"
    fi
fi

ready() { # ready WHAT DATA: how long `arcus up` on DATA takes
    local t0 t1
    rm -f "$2/address"
    t0=$(date +%s%N)
    "$B/arcus" up --data "$2" --listen 127.0.0.1:0 --run "/run/arcus-bench-$$" --name bench >"$2.log" 2>&1 &
    SERVER=$!
    pids+=("$SERVER")
    until [ -s "$2/address" ] && curl -fsS -o /dev/null "$(cat "$2/address")/readyz" 2>/dev/null; do sleep 0.005; done
    t1=$(date +%s%N)
    echo "$1: $(((t1 - t0) / 1000000)) ms, $(awk '{print ($14 + $15) * 10}' "/proc/$SERVER/stat") ms of CPU"
}

echo "== starting: from the command \`arcus up\` to the first good /readyz"
for _ in $(seq "$runs"); do
    rm -rf "$TMP/up"
    ready "first start" "$TMP/up"
    stop_server
    ready "second start" "$TMP/up"
    stop_server
done

if have sqlite3; then
    sqlite3 "$TMP/up/arcus.db" >/dev/null <<'SQL'
PRAGMA synchronous=OFF;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
INSERT INTO job (id, project, owner_kind, owner, name, state, reason, outcome, priority, count, next_task, done, failed, cancelled, exit_code, spec, flavor, idem, created_ms, started_ms, ended_ms, version)
SELECT 800000000000000000 + i * 1000, (SELECT id FROM project), 1, (SELECT id FROM person), 'old', 4, 0, 1, 50, 1, 1, 1, 0, 0, 0,
  '{"type":"job","name":"true","image":"host","command":["true"],"cpus":1,"memory":"1024MB","count":1,"priority":50,"grace":30,"retry_delay":10,"on_lost":"requeue","log_size":"100MB"}',
  'cpu.1x1', 'key' || i || char(10) || '0123456789abcdef', (strftime('%s', 'now') - 86400 * 3) * 1000 + i / 100, 1, 2, 3 FROM n;
SQL
    for _ in $(seq "$runs"); do ready "with a million finished jobs" "$TMP/up"; stop_server; done
fi

echo "== idle: server and agent, over $((seconds * 4)) seconds"
rm -rf "$TMP/up"
ready "start" "$TMP/up"
sleep 5
cloud() { echo "$SERVER"; pgrep -P "$SERVER" || true; }
ran() { for p in $(cloud); do cat "/proc/$p/task"/*/schedstat; done | awk '{s += $1} END {print s}'; }
for p in $(cloud); do
    echo "$(tr '\0' ' ' <"/proc/$p/cmdline" | awk '{print $2}'): $(awk '/^Rss/ {r = $2} /^Pss:/ {p = $2} END {print r " KB resident, " p " KB proportional"}' "/proc/$p/smaps_rollup")"
done
a=$(ran)
sleep $((seconds * 4))
b=$(ran)
awk -v n=$((b - a)) -v s=$((seconds * 4)) 'BEGIN {printf "together %.3f %% of a core\n", n / 1e7 / s}'
stop_server
