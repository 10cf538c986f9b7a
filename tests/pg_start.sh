#!/bin/sh
# pg_start.sh - a PostgreSQL of our own for tests: on a unix socket in a folder, nothing on the network, gone with the folder.
#
#   tests/pg_start.sh DIR          starts it in DIR (made if absent) and prints its URL, for ARCUS_TEST_POSTGRES
#   tests/pg_start.sh --stop DIR   stops it; the folder stays for whoever made it
#
# It forgets what it knows when the machine stops (fsync is off): never point a server that matters at it. PG_DURABLE=1, for
# benchmarks, leaves it as Debian would run it; PG_OPTIONS are more of its own. PG_LISTEN=ADDRESS makes it listen there too, with TLS or without, for anybody of that
# network: only for a network namespace of the test's own.
set -eu
stop=no
[ "${1:-}" = --stop ] && { stop=yes; shift; }
[ $# -eq 1 ] || { echo "usage: $0 [--stop] DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
bin=${PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)}
[ -x "$bin/postgres" ] || { echo "$0: no PostgreSQL here (Debian: apt-get install postgresql)" >&2; exit 1; }

# PostgreSQL refuses to run as root, and its user must be able to reach the folder.
as=
if [ "$(id -u)" = 0 ]; then
    as="setpriv --reuid=postgres --regid=postgres --init-groups --"
    chown postgres "$dir"
fi
run() { (cd / && $as "$@"); }

if [ $stop = yes ]; then
    [ ! -f "$dir/data/postmaster.pid" ] || run "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop >/dev/null
    exit 0
fi
if [ ${#dir} -gt 90 ]; then
    echo "$0: $dir is too long for the path of a socket" >&2
    exit 1
fi
if [ ! -f "$dir/data/PG_VERSION" ]; then
    run "$bin/initdb" -D "$dir/data" --no-sync -A trust -U postgres -E UTF8 --locale=C >"$dir/initdb.log" 2>&1 ||
        { cat "$dir/initdb.log" >&2; exit 1; }
    if [ -n "${PG_LISTEN:-}" ]; then
        echo "host all all samenet trust" >>"$dir/data/pg_hba.conf"
        run openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=db -addext "subjectAltName=IP:$PG_LISTEN" \
            -keyout "$dir/data/server.key" -out "$dir/data/server.crt" 2>"$dir/openssl.log" || { cat "$dir/openssl.log" >&2; exit 1; }
    fi
fi
if ! run "$bin/pg_ctl" -D "$dir/data" status >/dev/null 2>&1; then
    fast="-c fsync=off -c full_page_writes=off -c shared_buffers=32MB"
    [ -z "${PG_DURABLE:-}" ] || fast="-c shared_buffers=128MB"
    [ -z "${PG_LISTEN:-}" ] || fast="$fast -c ssl=on"
    run "$bin/pg_ctl" -D "$dir/data" -w -t 60 -l "$dir/postgres.log" -o "-c listen_addresses=${PG_LISTEN:-} -c unix_socket_directories='$dir' \
        $fast ${PG_OPTIONS:-} -c max_connections=200" start >/dev/null ||
        { cat "$dir/postgres.log" >&2; exit 1; }
fi
run "$bin/psql" -h "$dir" -U postgres -Atqc "SELECT 1 FROM pg_database WHERE datname = 'arcus'" postgres | grep -q 1 ||
    run "$bin/createdb" -h "$dir" -U postgres arcus
echo "postgres:///arcus?host=$dir&user=postgres"
