#!/usr/bin/env bash
# 37-audit.t - who did what, from where and with what result; that nobody changes it unseen who has the database: not a row, not the end, not a
# segment of the archive. What is old goes there in steps; who follows events that were dropped is told how things stand, and goes on.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cc -shared -fPIC -O1 -o "$BASE/shim.so" tests/shim.c || give_up "no shim"
export SHIM=$BASE/shim
edit() { # edit STATEMENTS: as somebody with the database's own program
    if [ -n "${ARCUS_FLOW_STORE:-}" ]; then psql -qAt "${ARCUS_FLOW_STORE/\/arcus\?/\/$STORE_DB?}" -c "$1"; else sqlite3 -cmd '.timeout 20000' "$DATA/arcus.db" "$1"; fi
}
cloud_up
export ARCUS_SERVER=$URL ARCUS_KEY=$KEY

# --- what is in it
printf 'password of bob' | arcus users create bob --password-stdin >/dev/null 2>&1
call POST /v1/login '{"user":"bob","password":"password of bob"}'
BOB=$(field .key)
AS=$BOB call POST /v1/nodes/tokens '{}'
refused "a user may not make tokens" 403 denied
for _ in $(seq 40); do curl -s -o /dev/null -H 'Authorization: Bearer ak_wrong' "$URL/v1/jobs"; done
run_sh 'exit 3'
is "a job has run" "$HOW" "failed exited 3"
mkdir "$BASE/folder" && echo of a folder >"$BASE/folder/file"
is "... and one with a folder of ours" "$(arcus run -q -c 0.1 -m 64MB -w "$BASE/folder" -- cat /workdir/file 2>&1)" "of a folder"
export_all() { arcus audit export | tee "$BASE/export"; }
told() { jq -r "select($1) | \"\(.actor) \(.address) \(.name) \(.state) \(.times)\"" "$BASE/export"; }
until_ok 60 eval 'export_all | grep -q unauthenticated'
is "every line is JSON, numbered from 1 without a gap" "$(jq .id "$BASE/export" | awk 'NR != $1' | head -n 1)" ""
is "who, from where, what and result: an act" "$(told '.name == "user.create"')" "admin 127.0.0.1 user.create ok 1"
is "... and a refusal" "$(told '.name == "node.token"')" "bob 127.0.0.1 node.token denied 1"
is "... a job's submit is there with its subject" "$(jq -r 'select(.name == "job.submit") | .subject' "$BASE/export" | head -n 1)" "$JOB"
unlike "no secret is in it" "$(cat "$BASE/export")" "password of bob|$BOB|$KEY"
arcus audit --limit 50 >"$BASE/list"
like "arcus audit lists it for people" "$(head -n 1 "$BASE/list")" '^ *NUMBER +AT +RESULT +TIMES +VERB +SUBJECT +ACTOR +ADDRESS$'
is "... newest first" "$(awk 'NR == 2 {print $1}' "$BASE/list")" "$(jq .id "$BASE/export" | tail -n 1)"
is "... by result and by actor" "$(arcus audit --result denied --actor bob -o json | jq -r '.items[].name')" node.token
is "bob may not look" "$(ARCUS_KEY=$BOB arcus audit >/dev/null 2>&1; echo $?) $(ARCUS_KEY=$BOB arcus audit verify >/dev/null 2>&1; echo $?)" "3 3"

# --- who changes it shows
verify() { arcus audit verify >"$BASE/proof" 2>"$BASE/proof.err"; echo "$? $(grep -cE '^(entry|segment) ' "$BASE/proof") $(tail -n 1 "$BASE/proof" | cut -d : -f 1)"; }
shows() { # shows NAME WHAT DO UNDO: after DO the proof names WHAT; after UNDO all is whole
    edit "$3" >/dev/null || fail "$1" "$3" "a change of the store"
    local got
    got=$(verify)
    if [ "${got%% *}" = 1 ] && [ "${got##* }" = broken ] && grep -qE "^$2" "$BASE/proof"; then pass "$1"; else fail "$1" "$got: $(head -n 5 "$BASE/proof"; cat "$BASE/proof.err")" "$2"; fi
    edit "$4" >/dev/null
    got=$(verify)
    [ "$got" = "0 0 whole" ] || fail "$1, and undone" "$got: $(head -n 5 "$BASE/proof")" "0 0 whole"
}
is "arcus audit verify: whole, and 0" "$(verify)" "0 0 whole"
like "... and it tells the last number and hash, to be kept" "$(cat "$BASE/proof")" '^whole: [0-9]+ entries and 0 archive segments checked, the last is [0-9]+ with hash [0-9a-f]{32}'
ACT=$(jq 'select(.name == "user.create") | .id' "$BASE/export") NO=$(jq 'select(.name == "node.token") | .id' "$BASE/export")
shows "a changed act" "entry $ACT: this row is not as it was written" "UPDATE event SET actor = 'eve' WHERE audit = $ACT" "UPDATE event SET actor = 'admin' WHERE audit = $ACT"
shows "a refusal made good" "entry $NO: this row is not as it was written" "UPDATE audit_note SET result = 'ok' WHERE number = $NO" "UPDATE audit_note SET result = 'denied' WHERE number = $NO"
shows "a removed act" "entry $ACT: this row is missing" "CREATE TABLE keep AS SELECT * FROM event WHERE audit = $ACT; DELETE FROM event WHERE audit = $ACT" "INSERT INTO event SELECT * FROM keep; DROP TABLE keep"
shows "a removed refusal" "entry $NO: this row is missing" "CREATE TABLE keep AS SELECT * FROM audit_note WHERE number = $NO; DELETE FROM audit_note WHERE number = $NO" "INSERT INTO audit_note SELECT * FROM keep; DROP TABLE keep"
END=$(sql "SELECT number FROM audit_head WHERE id = 1")
shows "the end of it cut off" "entry $END: " "CREATE TABLE keep AS SELECT * FROM event WHERE audit = $END; CREATE TABLE keep2 AS SELECT * FROM audit_note WHERE number = $END; DELETE FROM event WHERE audit = $END; DELETE FROM audit_note WHERE number = $END" \
    "INSERT INTO event SELECT * FROM keep; INSERT INTO audit_note SELECT * FROM keep2; DROP TABLE keep; DROP TABLE keep2"
edit "UPDATE event SET subject = 'eve' || subject WHERE audit = $ACT"
is "for programs: broken, which one, and 1" "$(arcus audit verify -o json >"$BASE/proof"; echo $?) $(jq -c '[.state, .problems[0].number]' "$BASE/proof")" "1 [\"broken\",$ACT]"
edit "UPDATE event SET subject = substr(subject, 4) WHERE audit = $ACT"
is "... and whole again" "$(verify)" "0 0 whole"

# --- it is old: a hundred days later
arcus usage -o json >"$BASE/usage"
stop "$UP"
echo "clock_s=$((100 * 86400))" >"$SHIM"
asan=$ASAN_OPTIONS
export LD_PRELOAD=$BASE/shim.so ASAN_OPTIONS=$asan:verify_asan_link_order=0
server_start server --listen 127.0.0.1:0 --default-image host
unset LD_PRELOAD
export ASAN_OPTIONS=$asan ARCUS_SERVER=$URL
moved() { [ "$(sql "SELECT count(*) FROM archive WHERE kind = 'usage'") $(sql "SELECT count(*) FROM job") $(sql "SELECT count(*) FROM usage")" = "1 0 0" ] && [ "$(sql "SELECT min(seq) FROM event")" -gt 4 ]; }
ok "jobs and events go, audit and usage go to the archive" until_ok 60 moved
uploads() { echo "$(sql "SELECT count(*) FROM blob") $(find "$DATA/blobs" -type f | wc -l)"; }
ok "... and uploads that nobody uses any more, with their files" until_ok 60 eval '[ "$(uploads)" = "0 0" ]'
cp "$BASE/export" "$BASE/before"
export_all >/dev/null
is "the export has every line that it had" "$(head -n "$(wc -l <"$BASE/before")" "$BASE/export" | cmp - "$BASE/before" && echo the same)" "the same"
is "of the flood each refusal is counted" "$(jq -s 'map(select(.state == "unauthenticated") | .times) | add' "$BASE/export")" 40
is "usage adds up to the same" "$(arcus usage -o json)" "$(cat "$BASE/usage")"
is "all is whole, segments too" "$(verify)" "0 0 whole"
like "... and they were checked" "$(cat "$BASE/proof")" ' and [2-9][0-9]* archive segments checked'
shows "a changed segment of the audit" "segment 1: archive of audit: this segment of the archive is not as it was written" \
    "UPDATE archive SET lines = replace(lines, '\"bob\"', '\"eve\"') WHERE kind = 'audit' AND segment = 1" "UPDATE archive SET lines = replace(lines, '\"eve\"', '\"bob\"') WHERE kind = 'audit' AND segment = 1"
for kind in audit usage; do
    shows "a removed segment of $kind" "(segment|entry) [01]: " "CREATE TABLE keep AS SELECT * FROM archive WHERE kind = '$kind'; DELETE FROM archive WHERE kind = '$kind'" "INSERT INTO archive SELECT * FROM keep; DROP TABLE keep"
done
shows "a changed bill" "segment 1: archive of usage: " "UPDATE archive SET to_ms = to_ms + 1 WHERE kind = 'usage'" "UPDATE archive SET to_ms = to_ms - 1 WHERE kind = 'usage'"

# --- who follows what was dropped
call GET '/v1/events?since=2'
refused "events that were dropped: 410" 410 gone 'take the snapshot'
is "... with a snapshot and its number" "$(field '.snapshot.number')" "$(sql "SELECT max(seq) FROM event")"
"$ARCUS" events -f --since 2 -o json >"$BASE/events" 2>"$BASE/events.err" &
pids+=($!)
ok "a follower gets the snapshot" until_ok 60 grep -q snapshot "$BASE/events"
NEW=$(submit '{"command":["true"],"gpus":64,"name":"later"}')
ok "... and goes on with what happens" until_ok 60 grep -q "$NEW" "$BASE/events"
is "... from its number, without a gap" "$(jq -s '.[0].snapshot.number as $n | [.[1:][].id] | . == [range($n + 1; $n + 1 + length)]' "$BASE/events")" true
like "... and says so" "$(cat "$BASE/events.err")" '^events after 2 are no longer kept before [0-9]+; going on from how things stand at [0-9]+$'
arcus events --since 2 >"$BASE/history" 2>"$BASE/history.err"
is "arcus events shows what is kept" "$? $(awk 'NR == 1 {print $1}' "$BASE/history")" "0 $(sql "SELECT min(seq) FROM event")"
like "... and says so" "$(cat "$BASE/history.err")" 'no longer kept'

books() { sql "SELECT 'events have gaps: ' || count(*) FROM event HAVING count(*) <> max(seq) - min(seq) + 1"; }      # attempts are gone, and what they used is in the archive
finish
