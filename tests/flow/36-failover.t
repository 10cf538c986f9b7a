#!/usr/bin/env bash
# 36-failover.t - three servers, their PostgreSQL (with TLS), a node and clients, each in a network namespace of its own. Under load the writer is
# killed, paused (also inside a transaction), cut off (also from all but the database), and everything is replaced by a later version and back. Another writes soon; what was acknowledged is there, once; the
# answers are those of one register; a container and its log stream go on; and while versions are replaced a client that asks once more is enough.
#
# HEADS_ROUNDS (1) says how often each, HEADS_SEED the load's seed, HEADS_JOBS how many live jobs there are before, HEADS_FAULTS what happens, HEADS_NEXT the later version
# (tests/next/). HEADS_OLD is an earlier version: everything begins as that one, is replaced by ARCUS and goes back (tests/older.sh makes one). `ARCUS=$PWD/build/arcus HEADS_ROUNDS=10 bash tests/flow/36-failover.t` prints the table of doc/performance.md.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nets.sh"
HEADS=$(dirname "$ARCUS")/heads FIRST=${HEADS_OLD:-$ARCUS} ROUNDS=${HEADS_ROUNDS:-1} SEED=${HEADS_SEED:-$RANDOM} N=f$$
declare -A PID AT NET=([d]=10 [a]=11 [b]=12 [c]=13 [k]=14 [g]=15)
networks_up 10.77.0
stop_all() { inside d tests/pg_start.sh --stop "$BASE/pg" >/dev/null 2>&1; networks_down; }
trap 'stop_all; leave' EXIT
PG_LISTEN=10.77.0.10 inside d tests/pg_start.sh "$BASE/pg" >/dev/null || give_up "PostgreSQL does not start"
STORE_URL="postgres://postgres@10.77.0.10/arcus?sslmode=require"
books_sql() { psql -qAt "postgres:///arcus?host=$BASE/pg&user=postgres" -c "$1"; }

curl() { inside k "$(type -P curl)" "$@"; }             # everything that asks does so from the clients' network
head_answers() { curl -fsSk --max-time 2 "${AT[$1]}/readyz"; }
head_start() { # head_start NAME [BINARY]
    local n=$1
    AT[$n]=https://10.77.0.${NET[$n]}:7000
    nsenter --net="/run/netns/$N$n" setpriv --pdeathsig TERM "${2:-$FIRST}" server --data "$BASE/$n" --listen "10.77.0.${NET[$n]}:7000" --keys "$BASE/keys" \
        --default-image host --store "$STORE_URL" >>"$BASE/$n.log" 2>&1 </dev/null &
    PID[$n]=$!
    pids+=("$!")
    until_ok 60 head_answers "$n" || give_up "server $n does not answer: $(tail -n 3 "$BASE/$n.log" | tr '\n' ' ')"
}
writer() { # the letter of the server that writes, as NAME (any that lives) tells it
    local at n
    at=$(curl -fsSk --max-time 2 -H "Authorization: Bearer $KEY" "${AT[$1]}/v1/servers" | jq -r '.items[] | select(.state == "writer") | .address')
    for n in a b c; do [ "${AT[$n]}" = "$at" ] && echo "$n"; done
}
other() { local n; for n in a b c; do [ "$n" != "$1" ] && { echo "$n"; return; }; done; }
all_serve() { [ "$(curl -fsSk --max-time 2 -H "Authorization: Bearer $KEY" "${AT[$1]}/v1/servers" | jq '.items | length')" = 3 ]; }
now_us() { echo $(($(date +%s%N) / 1000)); }

is "the check of histories can fail" "$("$HEADS" self)" ""
NEXT=${HEADS_NEXT:-$(dirname "$ARCUS")/arcus-next}
[ "$FIRST" = "$ARCUS" ] || NEXT=$ARCUS
[ -x "$NEXT" ] || { NEXT=$ARCUS; note "there is no $(dirname "$ARCUS")/arcus-next: servers are replaced by their like"; }
head_start a
KEY=$(cat "$BASE/a/admin.key")
head_start b
head_start c
until_ok 60 all_serve a
ok "three servers serve" all_serve a
URL=${AT[b]}
for r in 0 1 2 3; do call POST /v1/projects "{\"name\":\"reg-$r\"}"; done
is "a register is made through a server that does not write" "$STATUS" 201

# --- a node, a task that counts, and somebody who reads along
SERVERS=${AT[a]},${AT[b]},${AT[c]}
node_start() { # node_start BINARY [FLAGS]
    nsenter --net="/run/netns/${N}g" setpriv --pdeathsig TERM "$1" agent --server "$SERVERS" --data "$BASE/node.data" --run "$BASE/node.run" --name "$NODE" --sim-gpus 1 --beat-ms 500 \
        --allow-host-image "${@:2}" >>"$BASE/agent.log" 2>&1 </dev/null &
    AGENT=$!
    pids+=("$!")
}
linked() { cat "$BASE"/[abc].log | grep -c "node $NODE is connected"; }
call POST /v1/nodes/tokens '{}'
node_start "$FIRST" --token "$(field .token)"
until_ok 60 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/agent.log" | tr '\n' ' ')"
COUNTER=$(submit "$(sh_job 'n=0; while [ ! -e /outputs/end ]; do n=$((n + 1)); echo line $n; sleep 0.1; done')")
wait_for "$COUNTER" running 60
ATTEMPT=$(get "/v1/jobs/$COUNTER/attempts" | jq -r '.items[0].id')
nsenter --net="/run/netns/${N}k" env ARCUS_SERVER="$SERVERS" ARCUS_KEY="$KEY" ARCUS_CA="$BASE/keys/ca.pem" "$FIRST" logs -f "$COUNTER" >"$BASE/followed" 2>"$BASE/followed.err" &
FOLLOWER=$!
pids+=("$FOLLOWER")

# --- the load, and what happens to the writer
batch() { jq -nc --argjson n "$1" --arg name "${2:-old}" '{jobs: [range($n) | {name: "\($name)-\(.)", command: ["true"], image: "host", gpus: 64}]}'; }
for ((left = ${HEADS_JOBS:-0}; left > 0; left -= 5000)); do
    batch $((left < 5000 ? left : 5000)) >"$BASE/batch"
    call POST /v1/jobs/batch "@$BASE/batch"
    [ "$STATUS" = 201 ] || give_up "no jobs: $BODY"
done
FAULTS=() TABLE=()
for ((i = 0; i < ROUNDS; i++)); do FAULTS+=(${HEADS_FAULTS:-replace kill pause cut inside apart}); done
note "seed $SEED; again with: HEADS_SEED=$SEED HEADS_ROUNDS=$ROUNDS ./dev test 36-failover"
nsenter --net="/run/netns/${N}k" "$HEADS" load "$BASE/keys/ca.pem" "$KEY" $((${#FAULTS[@]} * 90 + 90)) "$SEED" "$BASE/history" "${AT[a]}" "${AT[b]}" "${AT[c]}" 2>"$BASE/load.err" &
LOAD=$!
pids+=("$LOAD")
until_ok 60 eval '[ "$(wc -l <"$BASE/history")" -gt 50 ]'
again() { GAP=$("$HEADS" gap "$BASE/history" "$1"); [ "$GAP" != -1 ]; }
in_transaction() { [ -n "$(books_sql "SELECT 1 FROM pg_stat_activity a, writer w WHERE a.pid = w.pid AND a.xact_start IS NOT NULL AND a.wait_event = 'ClientRead'")" ]; }
inside_transaction() { # 3,000 jobs are being written, slowly, by a writer that is stopped in the middle of that
    inside "$W" tc qdisc add dev eth0 root tbf rate 4mbit burst 32kb latency 200ms 2>/dev/null || { skip "inside" "no slow networks here"; return 1; }
    NAME=in$((++inner))
    batch 3000 "$NAME" >"$BASE/batch"
    curl -sk --max-time 60 --retry 1 --retry-all-errors -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -H "Idempotency-Key: $NAME" \
        --data-binary "@$BASE/batch" "${AT[$S]}/v1/jobs/batch" >"$BASE/batch.status" &
    BATCH=$!
    until_ok 60 in_transaction
    kill -STOP "${PID[$W]}"
    in_transaction || note "inside: it was not in the middle of a transaction any more"
}
inner=0
apart() { local n; for n in a b c k g; do [ "$n" = "$W" ] || inside "$W" ip route "$1" blackhole "10.77.0.${NET[$n]}/32"; done; }      # the database alone is in its reach
replace() { # replace BINARY WHICH: all three servers, one after the other, the writer among them; then the agent
    local from n was
    from=$(now_us)
    for n in a b c; do
        stop "${PID[$n]}"
        is "$2: server $n leaves with 0" "$?" 0
        head_start "$n" "$1"
        until_ok 60 all_serve "$n"
    done
    was=$(linked)
    stop "$AGENT"
    node_start "$1"
    ok "$2: the agent of that version is linked to servers of that version" until_ok 60 eval "[ \"\$(linked)\" -gt $was ] && node_ready"
    until_ok 60 eval "[ \"\$(awk -v now=$(now_us) '\$5 >= now' \"\$BASE/history\" | wc -l)\" -gt 200 ]"     # what was asked meanwhile has its answer
    tries() { awk -v from="$from" -v most="$1" '$5 >= from && $1 != "write" && $8 > most' "$BASE/history"; }
    note "$2: of $(tries 0 | wc -l) submits and reads $(tries 1 | wc -l) were asked more than once"
    is "$2: nothing was asked more than twice" "$(tries 2 | head -n 3)" ""
    [ "$2" != next ] || [ "$FIRST" = "$ARCUS" ] || ok "next: the store has what only that version knows ($STEPS steps before)" test "$(steps)" -gt "$STEPS"
    [ "$2" != next ] || [ "$NEXT" = "$ARCUS" ] || is "next: what only that version knows is in the store" \
        "$(books_sql "SELECT count(*) > 0 FROM job WHERE spec LIKE '%next_field%' AND next_hint = 0") $(get /v1/servers | jq -r '[.items[].version] | unique | join(" ")')" "t next"
}
steps() { books_sql "SELECT max(n) FROM migration"; }
STEPS=$(steps)
for fault in "${FAULTS[@]}"; do
    until_ok 60 eval '[ -n "$(writer a)" ]'
    W=$(writer a) S=$(other "$W")
    if [ $fault = replace ]; then replace "$NEXT" next; replace "$FIRST" back; continue; fi
    case $fault in
    inside) inside_transaction || continue ;;
    kill) kill -9 "${PID[$W]}" ;;
    pause) kill -STOP "${PID[$W]}" ;;
    cut) inside x ip link set "v$W" down ;;
    apart) apart add ;;
    esac
    T=$(now_us)
    until_ok 60 again "$T"
    ok "$fault: another server acknowledges a write" test "$GAP" -ge 0
    ok "$fault: it is another one" until_ok 60 eval "[ -n \"\$(writer $S)\" ] && [ \"\$(writer $S)\" != $W ]"
    TABLE+=("$fault $GAP")
    case $fault in
    inside)
        kill -CONT "${PID[$W]}"
        inside "$W" tc qdisc del dev eth0 root
        wait "$BATCH"
        is "inside: what it was in the middle of is done, once" "$? $(cat "$BASE/batch.status") $(books_sql "SELECT count(*) FROM job WHERE name LIKE '$NAME-%'")" "0 201 3000" ;;
    kill) wait "${PID[$W]}" 2>/dev/null; head_start "$W" ;;
    pause) kill -CONT "${PID[$W]}" ;;
    cut) inside x ip link set "v$W" up ;;
    apart) apart del ;;
    esac
    ok "$fault: who comes back serves" until_ok 60 head_answers "$W"
    until_ok 60 all_serve "$S"
done
for fault in kill pause inside cut apart; do
    note "ms to the next acknowledged write after $fault: $(printf '%s\n' "${TABLE[@]}" | awk -v f=$fault '$1 == f {print $2}' | sort -n | tr '\n' ' ')"
done
sed -n 's/.*this server writes from now on/# taken/p' "$BASE"/[abc].log
stop "$LOAD"

# --- the books
is "nothing was refused" "$(head -n 5 "$BASE/load.err")" ""
is "each understood what the others said" "$(grep -h 'cannot be understood\|unknown field' "$BASE"/*.log | head -n 3)" ""
is "the answers are those of one register" "$("$HEADS" check "$BASE/history")" ""
awk '$1 == "submit" && $7 == 0 && NF == 8 {print "j-" $2 "-" $4}' "$BASE/history" | sort >"$BASE/acknowledged"
books_sql "SELECT name FROM job WHERE name LIKE 'j-%'" | sort >"$BASE/there"
note "$(wc -l <"$BASE/acknowledged") submits were acknowledged, $(wc -l <"$BASE/history") questions answered in all"
is "every acknowledged job is there" "$(comm -23 "$BASE/acknowledged" "$BASE/there" | head -n 3)" ""
is "none is there twice" "$(uniq -d "$BASE/there" | head -n 3)" ""
is "the events are numbered without a gap" "$(books_sql "SELECT count(*) FROM event HAVING count(*) <> max(seq) - min(seq) + 1")" ""
is "the container ran on, its first attempt" "$(get "/v1/jobs/$COUNTER/attempts" | jq -r '[.items[] | .id + " " + .state] | join(",")')" "$ATTEMPT running"
touch "$BASE/node.data/outputs/$ATTEMPT/end"
is "... to a good end" "$(how "$COUNTER" 60)" "done succeeded 0"
until_ok 60 eval '! kill -0 "$FOLLOWER"'
awk '{print $2}' "$BASE/followed" >"$BASE/numbers"
is "who read its log along missed nothing and got nothing twice" "$(awk 'NR != $1' "$BASE/numbers" | head -n 3)" ""
ok "... and read on until the end" test "$(wc -l <"$BASE/numbers")" -gt 20
for n in a b c; do kill -TERM "${PID[$n]}" 2>/dev/null; done
for n in a b c; do wait "${PID[$n]}"; is "server $n leaves with 0" "$?" 0; done
UP=''
stop_all
finish
