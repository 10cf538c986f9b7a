#!/usr/bin/env bash
# 08-logs.t - what tasks print: live, apart by stream, bounded, the end of it first if asked, and still there after the end.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cloud_up

# --- live
arcus run -d --name clock -c 0.2 -m 128MB -- sh -c 'i=0; while [ ! -e /tmp/stop ]; do i=$((i+1)); echo tick $i; echo tock $i >&2; sleep 0.2; done; printf "no end of line"' >/dev/null 2>&1
wait_for clock running
"$ARCUS" logs -f clock >"$BASE/followed" 2>"$BASE/followed.err" &
FOLLOW=$!
pids+=($FOLLOW)
until_ok 10 grep -q 'tick 3' "$BASE/followed"
ok "it is followed while the task runs" in_state clock running
timeout 300 curl -sN -H "Authorization: Bearer $KEY" "$URL/v1/jobs/clock/logs?follow=true" >"$BASE/http" &
pids+=($!)
until_ok 5 grep -q 'tick 4' "$BASE/http"
ok "... also through plain HTTP" grep -q 'tick 4' "$BASE/http"
arcus exec clock -- touch /tmp/stop </dev/null
wait $FOLLOW
is "following ends with the task, with 0" $? 0
wait_end clock
is "nothing is lost or doubled while following" "$(grep -c '^tick' "$BASE/followed") $(grep '^tick' "$BASE/followed" | sort -u | wc -l)" "$(logs clock | grep -c '^tick') $(logs clock | grep -c '^tick')"
is "... in order" "$(grep '^tick' "$BASE/followed")" "$(logs clock | grep '^tick')"
like "a last line without an end comes too" "$(tail -c 14 "$BASE/followed")" 'no end of line'
is "logs afterwards are the same" "$(arcus logs clock)" "$(cat "$BASE/followed")"
is "only standard error" "$(arcus logs clock --stderr 2>&1 | grep -c tick)" 0
ok "... has its lines" test "$(arcus logs clock --stderr 2>&1 | grep -c tock)" -gt 2
is "only standard output" "$(arcus logs clock --stdout 2>&1 | grep -c tock)" 0
is "the API gives one stream alone" "$(logs clock source=stderr | grep -c tick) $(logs clock source=stdout | grep -c tock)" "0 0"
call GET '/v1/jobs/clock/logs?source=nonsense'
is "a stream of another name is refused" "$STATUS $(field .field)" "400 source"

# --- tail
JOB=$(submit "$(sh_job 'seq 1 5000')")
wait_end "$JOB"
is "the last three lines" "$(arcus logs "$JOB" --tail 3)" "4998
4999
5000"
is "the last none" "$(arcus logs "$JOB" --tail 0)" ""
is "more than there are" "$(arcus logs "$JOB" --tail 99999 | wc -l)" 5000
is "all of them, in order" "$(arcus logs "$JOB" | sha256sum)" "$(seq 1 5000 | sha256sum)"

# --- bytes as they are
JOB=$(submit "$(sh_job 'head -c 300000 /dev/urandom | tee /outputs/bytes; printf "\033[31mred\033[0m\n\000\377"')")
wait_end "$JOB"
arcus cp "$JOB:/outputs/bytes" "$BASE/bytes" >/dev/null 2>&1
arcus logs "$JOB" >"$BASE/got"
is "any bytes come through unchanged" "$(head -c 300000 "$BASE/got" | sha256sum)" "$(sha256sum <"$BASE/bytes")"

# --- bounded
JOB=$(submit "$(sh_job 'for i in $(seq 1 12); do head -c 500000 /dev/zero | tr "\0" x | fold -w 99; done; echo; echo the end' '{"log_size":"1MB","cpus":1}')")
wait_end "$JOB"
A=$(get "/v1/jobs/$JOB/attempts" | jq -r '.items[0].id')
within "6 MB into a log of 1 MB keep at most that (KB)" "$(du -sk --apparent-size "$DATA/agent/logs/$A" | cut -f1)" 100 1300
is "... the newest part" "$(arcus logs "$JOB" --tail 1)" "the end"
arcus logs "$JOB" >"$BASE/got" 2>/dev/null
within "... and that is what is read (KB)" $(($(stat -c %s "$BASE/got") / 1000)) 100 1300
LONG=$(submit "$(sh_job 'head -c 2000000 /dev/zero | tr "\0" y; echo; echo after' '{"cpus":1}')")
wait_end "$LONG"
is "a line of two million letters is a line" "$(arcus logs "$LONG" | head -n 1 | wc -c) $(arcus logs "$LONG" --tail 1)" "2000001 after"
FLOOD=$(submit "$(sh_job 'yes flood' '{"log_size":"1MB","cpus":1,"max_duration":"2s","grace":"0s"}')")
wait_for "$FLOOD" running
is "while one task floods, others are answered" "$(curl -s --max-time 30 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $KEY" "$URL/v1/jobs")" 200
wait_end "$FLOOD"
within "... and its log stays small (KB)" "$(du -sk --apparent-size "$DATA/agent/logs/$(get "/v1/jobs/$FLOOD/attempts" | jq -r '.items[0].id')" | cut -f1)" 100 1300

# --- before the beginning, and what is not there
call PATCH "/v1/nodes/$NODE" '{"state":"cordoned"}'
WAITS=$(submit "$(sh_job 'echo at last')")
"$ARCUS" logs -f "$WAITS" >"$BASE/waited" 2>/dev/null &
FOLLOW=$!
pids+=($FOLLOW)
call PATCH "/v1/nodes/$NODE" '{"state":"ready"}'
wait $FOLLOW
is "one can follow a job that has not begun" "$(cat "$BASE/waited")" "at last"
arcus logs nothing-here >/dev/null 2>"$BASE/err"
is "logs of nothing: exit code 4" $? 4
SILENT=$(submit "$(sh_job true)")
wait_end "$SILENT"
is "logs of a silent one are empty" "$(arcus logs "$SILENT"; echo $?)" 0
finish
