#!/usr/bin/env bash
# 34-backup.t - a copy of the whole cloud while it works, and a cloud from the copy: everything as of one moment, nodes come back by
# themselves, what ran meanwhile is told or ended, and nothing runs twice. On PostgreSQL the copy becomes a cloud on SQLite.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
PORT=0
server() { server_start server --listen "127.0.0.1:$PORT" --default-image host --lease 30; PORT=${URL##*:}; }
token() { call POST /v1/nodes/tokens '{}'; field .token; }
RUN=$BASE/$NODE.run OUTPUTS=$BASE/$NODE.data/outputs
server
agent_start "$NODE" --sim-gpus 4 --beat-ms 500 --token "$(token)"
until_ok 60 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/$NODE.log")"
ARCUS_SERVER=$URL ARCUS_KEY=$KEY
export ARCUS_SERVER ARCUS_KEY

# A task that notes when it is alive, until a file appears in its outputs. The notes of all attempts of a job are in one volume.
ticker() { submit "$(sh_job 'echo "begin $ARCUS_ATTEMPT_ID $(date +%s%3N)" >>/notes/$ARCUS_JOB_NAME; while [ ! -e /outputs/go ]; do echo "alive $ARCUS_ATTEMPT_ID $(date +%s%3N)" >>/notes/$ARCUS_JOB_NAME; sleep 0.1; done; exit $(cat /outputs/go)' \
    "{\"name\":\"$1\",\"volumes\":[\"notes:/notes\"],\"gpus\":${2:-1}}")"; }
attempt_of() { get "/v1/jobs/$1/attempts" | jq -r '.items | sort_by(.id) | .[-1].id'; }
attempts_of() { get "/v1/jobs/$1/attempts" | jq '.items | length'; }
go() { echo "$2" >"$OUTPUTS/$1/go"; }
notes() { cat "$BASE/$NODE.data/volumes/"*"/$1"; }
begun() { notes "$1" | grep -c begin; }
call POST /v1/volumes '{"name":"notes"}'
printf 'a secret' | arcus secrets set WORD >/dev/null
head -c 3000000 /dev/urandom >"$BASE/upload"
DIGEST=sha256:$(sha256sum "$BASE/upload" | cut -d ' ' -f 1)
call PUT "/v1/blobs/$DIGEST" '' --data-binary "@$BASE/upload" -H 'Content-Type: application/octet-stream'
is "something is uploaded" "$STATUS" 201

EARLY=$(ticker early) LONG=$(ticker long) SHORT=$(ticker short)
for j in $EARLY $LONG $SHORT; do wait_for "$j" running; done
go "$(attempt_of "$EARLY")" 3
is "a job has ended before the backup" "$(how "$EARLY")" "failed exited 3"
WAITS=$(ticker waits 4)     # has no room while the others run

# --- the copy, while people go on asking
(
    for i in $(seq 400); do
        [ -e "$BASE/enough" ] && break
        began=$(date +%s%3N)
        id=$(curl -s --max-time 20 -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: k$i" -d '{"command":["true"],"gpus":64}' "$URL/v1/jobs" | jq -r '.id // empty')
        echo "$i $id $(($(date +%s%3N) - began))" >>"$BASE/asked"
    done
) &
ASKING=$!
until_ok 60 eval '[ "$(wc -l <"$BASE/asked")" -ge 5 ]'
before=$(wc -l <"$BASE/asked")
[ -z "${STORE_DB:-}" ] || rm -rf "$DATA/blobs"/prj-*     # of a store that several servers share it is a cache
ok "arcus backup" arcus backup "$BASE/cloud.backup"
after=$(wc -l <"$BASE/asked")
touch "$BASE/enough"
wait "$ASKING"
is "every submit was acknowledged meanwhile" "$(awk '$2 == ""' "$BASE/asked")" ""
ok "it is a tar that everybody can read" tar tf "$BASE/cloud.backup"
is "it is for its owner alone" "$(stat -c %a "$BASE/cloud.backup")" 600
from_backup() { tar xOf "$BASE/cloud.backup" --wildcards "tables/$1/*" | grep -v '^\[\["'; }
is "its checksum is what sha256sum says" "$(head -c $(($(stat -c %s "$BASE/cloud.backup") - 2048)) "$BASE/cloud.backup" | sha256sum | cut -d ' ' -f 1)" "$(tar xOf "$BASE/cloud.backup" SHA256)"
is "its events have no gap" "$(from_backup event | jq -s 'length == (map(.[0]) | max)')" true
jobs_then=$(from_backup job | wc -l)
within "its jobs are those of one moment during it" "$jobs_then" $((before + 4)) $((after + 5))
is "each of them has its event" "$(from_backup event | jq -r '.[3]' | grep -c '^job.queued')" "$jobs_then"
unlike "neither keys nor secrets are in it" "$(strings -n 8 "$BASE/cloud.backup")" "$KEY|a secret"
ok "an existing file is not overwritten" eval '! arcus backup "$BASE/cloud.backup" 2>/dev/null'
call POST /v1/users '{"name":"bob","password":"password of bob"}'
call POST /v1/login '{"user":"bob","password":"password of bob"}'
AS=$(field .key) call GET /v1/backup
refused "only operators may" 403 denied

# --- who goes away in the middle leaves nothing behind
head -c 40000000 /dev/urandom >"$BASE/large"
call PUT "/v1/blobs/sha256:$(sha256sum "$BASE/large" | cut -d ' ' -f 1)" '' --data-binary "@$BASE/large" -H 'Content-Type: application/octet-stream'
slow() { curl -s --limit-rate 1M -H "Authorization: Bearer $KEY" "$URL/v1/backup" >"$BASE/slow" & SLOW=$!; until_ok 60 test -s "$BASE/slow"; }
slow
call GET /v1/backup
refused "one at a time" 409 conflict "another backup"
kill -9 $SLOW; wait $SLOW 2>/dev/null
none_left() { [ ! -e "$DATA/backup.part" ]; }
ok "a client that is killed leaves nothing on the server" until_ok 60 none_left
slow
stop "$UP" KILL
wait $SLOW
ok "half a backup is refused" eval '! arcus restore "$BASE/slow" --data "$BASE/never" 2>"$BASE/why"'
like "... in words" "$(cat "$BASE/why")" 'cut off'
server
ok "a server that was killed in the middle leaves nothing once it is back" none_left
until_ok 60 node_ready

# --- life goes on after the backup
go "$(attempt_of "$SHORT")" 0
is "a task ends after the backup" "$(how "$SHORT")" "done succeeded 0"
LONG_ATTEMPT=$(attempt_of "$LONG")
LATE=$(ticker late)
wait_for "$LATE" running
LATE_ATTEMPT=$(attempt_of "$LATE")
usage_then=$(from_backup usage | wc -l)

# --- the disaster, and the cloud from the copy
stop "$UP" KILL
ok "a backup without a server" arcus backup "$BASE/offline.backup" --data "$DATA" "${STORE[@]}"
is "... has all jobs, too" "$(tar xOf "$BASE/offline.backup" --wildcards 'tables/job/*' | grep -vc '^\[\["')" "$(sql 'SELECT count(*) FROM job')"
is "... and overwrites nothing" "$(arcus backup "$BASE/offline.backup" --data "$DATA" "${STORE[@]}" 2>/dev/null; echo $?)" 5
mv "$DATA" "$BASE/lost"
[ -n "${STORE_DB:-}" ] && psql -qAt "$ARCUS_FLOW_STORE" -c "DROP DATABASE $STORE_DB WITH (FORCE)" >/dev/null && unset ARCUS_FLOW_STORE STORE_DB && STORE=()
cp "$BASE/cloud.backup" "$BASE/bad.backup"
printf '\377' | dd of="$BASE/bad.backup" bs=1 seek=20000 conv=notrunc 2>/dev/null
ok "a flipped bit is refused" eval '! arcus restore "$BASE/bad.backup" --data "$DATA" 2>"$BASE/why"'
like "... in words" "$(cat "$BASE/why")" damaged
for ms in 5 15 25 35 45 55 65 80 100; do     # killed wherever it is
    "$ARCUS" restore "$BASE/cloud.backup" --data "$DATA" >/dev/null 2>&1 &
    R=$!
    sleep "0.$(printf %03d $ms)"
    kill -9 $R 2>/dev/null && note "killed after $ms ms"
    wait $R 2>/dev/null || true
done
arcus restore "$BASE/cloud.backup" --data "$DATA" >"$BASE/told" 2>&1 || grep -q 'not empty' "$BASE/told" || give_up "no restore: $(cat "$BASE/told")"
is "after any number of kills it is there once" "$(sqlite3 -readonly "$DATA/arcus.db" 'SELECT count(*) FROM job')" "$jobs_then"
is "... and whole" "$(sqlite3 "$DATA/arcus.db" 'PRAGMA integrity_check')" ok
ok "... with what was uploaded" cmp "$BASE/upload" "$(find "$DATA/blobs" -name "${DIGEST#sha256:}")"
is "... and nothing half" "$(find "$DATA" -name '*part*')" ""
ok "it goes into an empty store only" eval '! arcus restore "$BASE/cloud.backup" --data "$DATA" 2>"$BASE/why"'
like "... and says what to do" "$(cat "$BASE/why")" 'not empty.*Name another'
ok "without its keys it does not start, and makes none" eval '! "$ARCUS" server --data "$DATA" --listen 127.0.0.1:0 2>"$BASE/why" && [ ! -e "$DATA/keys/hash.key" ]'
like "... in words" "$(cat "$BASE/why")" 'keys .* are not those of this store'
cp -a "$BASE/lost/keys" "$DATA/"
cp -a "$BASE/lost/admin.key" "$DATA/"
[ ! -e "$BASE/lost/tls" ] || cp -a "$BASE/lost/tls" "$DATA/"
came=$(date +%s%3N)
server
ok "its node comes back by itself" until_ok 60 node_ready
is "what runs runs on, the same attempt" "$(job "$LONG") $(attempt_of "$LONG")" "running $LONG_ATTEMPT"
is "what ended after the backup is told by its node" "$(how "$SHORT")" "done succeeded 0"
is "... and was not run again" "$(begun short) $(attempts_of "$SHORT")" "1 1"
call GET "/v1/jobs/$LATE"
is "what was asked for later is unknown" "$STATUS" 404
quiet_late() { local n; n=$(notes late | wc -l); sleep 1; [ "$(notes late | wc -l)" = "$n" ]; }
ok "... and does not run on" until_ok 60 quiet_late
is "the books went on from the copy" "$(sql "SELECT count(*) FROM event WHERE kind = 'job.queued'") $(sql 'SELECT count(*) FROM usage')" "$jobs_then $((usage_then + 1))"
i=$(awk 'NR == 3 {print $1}' "$BASE/asked") id=$(awk 'NR == 3 {print $2}' "$BASE/asked")
is "the same Idempotency-Key is still the same job" "$(curl -s -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: k$i" -d '{"command":["true"],"gpus":64}' "$URL/v1/jobs" | jq -r .id)" "$id"
go "$LONG_ATTEMPT" 0
is "the long one ends well" "$(how "$LONG")" "done succeeded 0"

# What was placed after the backup may run where nobody sees it: nothing is placed before that has ended. Its job ran in neither.
ok "what waits is placed" until_ok 120 in_state "$WAITS" running
ok "... not before the time that a task may run unseen" test $(($(sql "SELECT min(a.placed_ms) FROM attempt a JOIN job j ON j.id = a.job WHERE j.name = 'waits'") - came)) -ge 30000
is "... and an event says so" "$(sql "SELECT count(*) FROM event WHERE kind = 'cloud.restored'")" 1
ok "nothing of before ran beside it" test "$(notes late | awk 'END {print $3}')" -lt "$(notes waits | awk 'NR == 1 {print $3}')"
until_ok 60 test -d "$OUTPUTS/$(attempt_of "$WAITS")"
go "$(attempt_of "$WAITS")" 0
is "... and it ends well" "$(how "$WAITS") $(begun waits)" "done succeeded 0 1"
stop "$UP"
server
is "a restart does not wait a second time" "$(sql "SELECT count(*) FROM restored")" 0
rm -rf "$BASE/lost"
finish
