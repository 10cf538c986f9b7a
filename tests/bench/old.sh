#!/usr/bin/env bash
# old.sh - a store with many finished jobs: every listing and the restart, beside the same with a thousand.
#
#   tests/bench/old.sh [JOBS] [sqlite|postgres]      JOBS: 1000000
#
# The rows are made by the database itself, their indexes after them: each finished job with its task, attempt and usage, spread over 30 days (DAYS=1: all of
# them today), and four events each of the last EVENTS_OF jobs (a million); every tenth job of the last day was submitted with an Idempotency-Key
# (KEYS_ALL=1: all of that day). Times are the median of five, in milliseconds. Ten million take about 12 GB in BENCH_DIR (/tmp) until it ends.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
B=${BUILD:-build}
N=${1:-1000000} KIND=${2:-sqlite} DAYS=${DAYS:-30} EVENTS_OF=${EVENTS_OF:-1000000}
TMP=$(mktemp -d "${BENCH_DIR:-/tmp}/arcus-old.XXXXXX")
pid=
cleanup() { [ -z "$pid" ] || kill "$pid" 2>/dev/null || true; wait 2>/dev/null || true; [ "$KIND" != postgres ] || tests/pg_start.sh --stop "$TMP/pg" || true; rm -rf "$TMP"; }
trap cleanup EXIT
STORE=()
[ "$KIND" != postgres ] || { chmod 755 "$TMP"; PG=$(PG_OPTIONS="-c max_wal_size=2GB -c checkpoint_timeout=30min -c autovacuum=off" tests/pg_start.sh "$TMP/pg"); STORE=(--store "$PG"); }

now() { date +%s%N; }
start() { # the time from exec to a good /readyz
    local t=$(now)
    rm -f "$TMP/data/address"
    "$B/arcus" server --data "$TMP/data" --listen 127.0.0.1:0 --default-image host --keep-jobs forever --keep-events forever --keep-usage forever "${STORE[@]}" >"$TMP/log" 2>&1 &
    pid=$!
    until [ -s "$TMP/data/address" ] && URL=$(cat "$TMP/data/address") && curl -sf "$URL/readyz" >/dev/null; do
        kill -0 "$pid" 2>/dev/null || { cat "$TMP/log" >&2; exit 1; }
        sleep 0.005
    done
    READY=$((($(now) - t) / 1000000))
}
stop() { kill "$pid"; wait "$pid" 2>/dev/null || true; pid=; }
sql() {
    if [ "$KIND" = postgres ]; then { echo "SET maintenance_work_mem = '512MB'; SET synchronous_commit = off;"; cat; } | psql -Atq -v ON_ERROR_STOP=1 "$PG" -f -
    else { echo 'PRAGMA synchronous=OFF; PRAGMA cache_size=-262144; PRAGMA temp_store=FILE;'; cat; } | sqlite3 -bail "$TMP/data/arcus.db"; fi
}
# indexes DROP|CREATE: the statements for those that are no key of their table.
indexes() {
    if [ "$KIND" = postgres ]; then
        echo "SELECT CASE WHEN '$1' = 'DROP' THEN 'DROP INDEX ' || indexname ELSE indexdef END || ';' FROM pg_indexes i WHERE schemaname = 'public'
              AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conname = i.indexname) AND tablename IN ('job', 'task', 'attempt', 'usage', 'event')"
    else
        echo "SELECT CASE WHEN '$1' = 'DROP' THEN 'DROP INDEX ' || name ELSE sql END || ';' FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
              AND tbl_name IN ('job', 'task', 'attempt', 'usage', 'event');"
    fi | sql
}

# fill FROM TO: numbers of jobs. Ids are times in the upper bits, as the program makes them; here any growing number does.
fill() {
    local series old
    if [ "$KIND" = postgres ]; then series="generate_series($1::bigint, $2::bigint) AS n(i)"; else series="(WITH RECURSIVE n(i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i < $2) SELECT i FROM n) AS n"; fi
    old="($(($(date +%s) * 1000 - 86400000 * DAYS)) + i * $((86400000 * DAYS)) / $N)"
    local spec='{"type":"job","image":"host","command":["true"],"cpus":1,"memory":"1024MB"}'
    local p="(SELECT MIN(id) FROM project)" u="(SELECT MIN(id) FROM person)" keyed="i > $N - $N / $DAYS AND (${KEYS_ALL:-0} = 1 OR i % 10 = 0)"
    local idem="CASE WHEN $keyed THEN 'key-' || i || chr(10) || '0123456789abcdef' END" slot="CASE WHEN $keyed THEN i * 7919 END"
    [ "$KIND" = postgres ] || idem=${idem//chr(10)/char(10)}
    sql <<SQL
BEGIN;
INSERT INTO job (id, project, owner_kind, owner, name, state, reason, outcome, priority, count, next_task, done, failed, cancelled, exit_code, spec, flavor, idem, created_ms, started_ms, ended_ms, version, idem_slot)
 SELECT 1000 + i * 2, $p, 1, $u, 'train-' || (i % 1000), CASE WHEN i % 1000 = 7 THEN 5 ELSE 4 END, 0, 1, 50, 1, 1, 1, 0, 0, 0, '$spec', 'cpu.1x1', $idem, $old, $old + 1000, $old + 5000, 3, $slot FROM $series;
INSERT INTO task (job, task, project, state, outcome, tries, faults, attempt, exit_code, signal, detail, not_before_ms, started_ms, ended_ms)
 SELECT 1000 + i * 2, 0, $p, 4, 1, 1, 0, 1001 + i * 2, 0, 0, '', 0, $old + 1000, $old + 5000 FROM $series;
INSERT INTO attempt (id, job, task, project, node, state, outcome, lease, run_for_s, placed_ms, started_ms, ended_ms, exit_code, signal, detail, grace_s)
 SELECT 1001 + i * 2, 1000 + i * 2, 0, $p, 1, 4, 1, '{"cpu_milli":1000,"mem_mib":1024,"gpus":[]}', 300, $old, $old + 1000, $old + 5000, 0, 0, '', 30 FROM $series;
INSERT INTO usage (attempt, project, owner_kind, owner, job, node, flavor, gpu_milli, gpu_mib, cpu_milli, mem_mib, started_ms, ended_ms, billable, simulated, rolled)
 SELECT 1001 + i * 2, $p, 1, $u, 1000 + i * 2, 1, 'cpu.1x1', 0, 0, 1000, 1024, $old + 1000, $old + 5000, 1, 0, 1 FROM $series;
INSERT INTO usage_day (day, project, owner_kind, owner, flavor, simulated, attempts, ms, gpu_milli_ms, gpu_mib_ms, cpu_milli_ms, mem_mib_ms, longest_ms)
 SELECT ($old + 1000) / 86400000, $p, 1, $u, 'cpu.1x1', 0, COUNT(*), COUNT(*) * 4000, 0, 0, COUNT(*) * 4000000, COUNT(*) * 4096000, 4000 FROM $series GROUP BY 1
 ON CONFLICT (day, project, owner_kind, owner, flavor, simulated) DO UPDATE SET attempts = usage_day.attempts + excluded.attempts, ms = usage_day.ms + excluded.ms, cpu_milli_ms = usage_day.cpu_milli_ms + excluded.cpu_milli_ms, mem_mib_ms = usage_day.mem_mib_ms + excluded.mem_mib_ms;
$(for k in 0 1 2 3; do
    kinds=(job.queued attempt.placed attempt.ended job.done)
    echo "INSERT INTO event (seq, at_ms, project, kind, subject, actor, actor_id, apikey, address, request, idem, data, audit, verb, chain) SELECT 100 + i * 4 + $k, $old + $k, $p, '${kinds[$k]}', 'job-0s' || i, 'admin', $u, 1, '127.0.0.1', 'req-0123456789abcdef', NULL, '{}', $([ "$k" = 0 ] && echo "100 + i, 'job.submit', '00112233445566778899aabbccddeeff'" || echo "NULL, NULL, NULL") FROM $series WHERE i > $N - $EVENTS_OF;"
done)
COMMIT;
SQL
}

median() { sort -n | sed -n 3p; }
timed() { # timed WHAT PATH
    local what=$1 path=$2 t
    t=$(for _ in 1 2 3 4 5; do curl -s -o /dev/null -w '%{time_total}\n' -H "Authorization: Bearer $KEY" "$URL$path"; done | median)
    printf '%-34s %8.1f\n' "$what" "$(awk "BEGIN { print $t * 1000 }")"
}
listings() {
    KEY=$(cat "$TMP/data/admin.key")
    local id
    timed 'jobs (live)' '/v1/jobs?limit=100'
    timed 'jobs all' '/v1/jobs?all=true&limit=100'
    timed 'jobs failed' '/v1/jobs?state=failed&limit=100'
    timed 'jobs running' '/v1/jobs?state=running&limit=100'
    timed 'jobs by name' '/v1/jobs?all=true&name=train-7&limit=100'
    timed 'jobs by a name that is not' '/v1/jobs?all=true&name=nonesuch&limit=100'
    timed 'job by name' '/v1/jobs/train-8'
    id=$(curl -s -H "Authorization: Bearer $KEY" "$URL/v1/jobs?all=true&limit=1" | sed 's/.*"id":"\(job-[a-z0-9]*\)".*/\1/')
    timed 'job by id' "/v1/jobs/$id"
    timed 'its tasks' "/v1/jobs/$id/tasks"
    timed 'its attempts' "/v1/jobs/$id/attempts"
    timed 'events, first page' '/v1/events?limit=100'
    timed 'events, last page' "/v1/events?limit=100&since=$((N * 4))"
    timed 'usage, all time' '/v1/usage'
    timed 'usage by user and day' '/v1/usage?by=user,day'
    timed 'usage of the last hour' "/v1/usage?from=$(date -u -d '1 hour ago' +%Y-%m-%dT%H:%M:%SZ)"
    timed 'usage from within a day, 20 d ago' "/v1/usage?from=$(date -u -d '20 days ago' +%Y-%m-%dT12:30:00Z)&to=$(date -u -d '19 days ago' +%Y-%m-%dT00:00:00Z)"
    timed 'audit, newest' '/v1/audit?limit=100'
    timed 'audit, a verb that is rare' '/v1/audit?limit=100&verb=key.create'
    timed 'keys' '/v1/keys'
    timed 'gpus' '/v1/gpus'
}

start; stop
all=$N
step=100000
begin=$(now)
again=$(indexes CREATE)
indexes DROP | sql
for ((i = 1; i <= all; i += step)); do fill $i $((i + step - 1 < all ? i + step - 1 : all)); done
echo "$again" | sql
echo "$KIND: $all finished jobs made in $((($(now) - begin) / 1000000)) ms"
[ "$KIND" != postgres ] || echo 'VACUUM ANALYZE' | sql
for _ in 1 2 3; do start; echo "restart to /readyz: $READY ms, $(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status") MB resident"; stop; done
start
listings
du -sh "$TMP" | cut -f1
