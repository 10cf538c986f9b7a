#!/usr/bin/env bash
# 35-database.t - PostgreSQL is restarted, killed and failed over to its replica while people ask: every acknowledged request is there, the
# others were told, and the server goes on by itself. (tests/pg_start.sh makes databases that forget a power cut, not a kill.)
. "$(dirname "$0")/lib.sh"
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
as_pg() { (cd / && if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; else "$@"; fi); }
tests/pg_start.sh "$BASE/a" >/dev/null || give_up "no PostgreSQL"
gone() { tests/pg_start.sh --stop "$BASE/a" >/dev/null 2>&1; tests/pg_start.sh --stop "$BASE/b" >/dev/null 2>&1; }
trap 'gone; leave' EXIT
server_start server --listen 127.0.0.1:0 --default-image host --store "postgres:///arcus?host=$BASE/a,$BASE/b&user=postgres"

# Four people ask as fast as they can, each job once (the same Idempotency-Key until it is acknowledged).
asker() { # asker NAME: until $BASE/enough
    local n=0 id
    while [ ! -e "$BASE/enough" ]; do
        n=$((n + 1)) id=
        while [ -z "$id" ] && [ ! -e "$BASE/enough" ]; do
            id=$(curl -s --max-time 5 -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: $1-$n" -d '{"command":["true"],"gpus":64}' "$URL/v1/jobs" | jq -r '.id // empty' 2>/dev/null)
            [ -n "$id" ] || echo "$1-$n" >>"$BASE/told"
        done
        [ -z "$id" ] || echo "$1-$n $id" >>"$BASE/acked"
    done
}
acknowledged() { wc -l <"$BASE/acked"; }
more() { local n; n=$(acknowledged); until_ok 60 eval "[ \$(acknowledged) -ge $((n + ${1:-5})) ]"; }
: >"$BASE/acked"
: >"$BASE/told"
askers=()
for a in w x y z; do asker $a & askers+=($!); done
ok "people ask" more
as_pg "$bin/pg_ctl" -D "$BASE/a/data" -m fast -w restart >/dev/null 2>&1
ok "PostgreSQL restarted: writes are acknowledged again by themselves" more
kill -9 "$(head -n 1 "$BASE/a/data/postmaster.pid")"
until_ok 60 tests/pg_start.sh "$BASE/a"     # not before the last of its processes has gone
ok "PostgreSQL killed and started: writes are acknowledged again" more
stuck() { is "$1" "$(curl -s -o /dev/null -w '%{http_code}' --max-time 15 "$URL/healthz")" 200; }
stuck "... the server lives"

# --- a replica that has what is acknowledged before anybody hears of it
mkdir "$BASE/b" && { [ "$(id -u)" != 0 ] || chown postgres "$BASE/b"; }
as_pg "$bin/pg_basebackup" -h "$BASE/a" -U postgres -D "$BASE/b/data" -R -X stream -c fast --no-sync || give_up "no replica"
as_pg "$bin/pg_ctl" -D "$BASE/b/data" -w -t 60 -l "$BASE/b/postgres.log" -o "-c listen_addresses= -c unix_socket_directories='$BASE/b' -c fsync=off -c max_connections=200 -c shared_buffers=32MB" start >/dev/null || give_up "the replica does not start: $(tail -n 3 "$BASE/b/postgres.log")"
on_a() { psql -qAt "postgres:///arcus?host=$BASE/a&user=postgres" -c "$1"; }
on_a "ALTER SYSTEM SET synchronous_standby_names = '*'" && on_a "SELECT pg_reload_conf()" >/dev/null
in_step() { [ "$(on_a 'SELECT sync_state FROM pg_stat_replication')" = sync ]; }
ok "a replica is in step" until_ok 60 in_step
more
kill -9 "$(head -n 1 "$BASE/a/data/postmaster.pid")"
as_pg "$bin/pg_ctl" -D "$BASE/b/data" -w promote >/dev/null
began=$(date +%s%3N)
ok "failed over: writes are acknowledged by the replica, without a restart of ours" more 1
note "the first acknowledged write came $(($(date +%s%3N) - began)) ms after the promotion; $(sort -u "$BASE/told" | wc -l) requests were refused and asked again"
ok "... and more of them" more
touch "$BASE/enough"
wait "${askers[@]}"
sql() { psql -qAt "postgres:///arcus?host=$BASE/b&user=postgres" -c "$1"; }
get_ids() { sql "SELECT count(*) FROM job"; }
is "every acknowledged job is there, once" "$(cut -d ' ' -f 2 "$BASE/acked" | sort -u | wc -l)" "$(acknowledged)"
missing=0
for id in $(cut -d ' ' -f 2 "$BASE/acked" | shuf -n 60); do [ "$(job "$id" .id)" = "$id" ] || missing=$((missing + 1)); done
is "... as the server sees it" "$missing" 0
jobs=$(get_ids) wished=$(($(acknowledged) + 4))
ok "... and no job twice ($jobs jobs, $(acknowledged) acknowledged, 4 people stopped in the middle)" test "$jobs" -ge "$(acknowledged)" -a "$jobs" -le "$wished"
stop "$UP"
is "the server leaves with 0" "$?" 0
is "the books balance" "$(books 2>&1)" ""
UP=
gone
finish
