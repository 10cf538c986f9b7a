#!/usr/bin/env bash
# 36-failover.t - three servers, their PostgreSQL, a node and clients, each in a network namespace of its own. Under load the writer is killed,
# paused, cut off, and replaced as in an upgrade. Another writes soon; what was acknowledged is there, once; the answers are those of one
# register; a container and its log stream go on. How often was asked during a replacement is only noted: a request that is on its way to a
# writer that leaves is refused, and is not asked again by the server that passed it on.
#
# HEADS_ROUNDS (1) says how often each, HEADS_SEED the load's seed, HEADS_OLD a binary that the servers are replaced from. `ARCUS=$PWD/build/arcus HEADS_ROUNDS=10 bash tests/flow/36-failover.t` prints
# the table of doc/performance.md.
. "$(dirname "$0")/lib.sh"
HEADS=$(dirname "$ARCUS")/heads ROUNDS=${HEADS_ROUNDS:-1} SEED=${HEADS_SEED:-$RANDOM} N=f$$
declare -A PID AT NET=([d]=10 [a]=11 [b]=12 [c]=13 [k]=14 [g]=15)
inside() { nsenter --net="/run/netns/$N$1" "${@:2}"; }     # inside NAME COMMAND...: ip netns would hide /sys/fs/cgroup
networks_down() {
    local n
    inside d tests/pg_start.sh --stop "$BASE/pg" >/dev/null 2>&1
    for n in "${!NET[@]}" x; do ip netns del "$N$n" 2>/dev/null; done
}
trap 'networks_down; leave' EXIT
ip netns add "${N}x" 2>/dev/null || { skip "failover" "no network namespaces here"; echo "1..$count"; said_plan=1; exit 0; }
inside x ip link add bridge0 type bridge
inside x ip link set bridge0 up
for n in "${!NET[@]}"; do
    ip netns add "$N$n"
    inside x ip link add "v$n" type veth peer name eth0 netns "$N$n"
    inside x ip link set "v$n" master bridge0 up
    inside "$n" ip link set lo up
    inside "$n" ip addr add "10.77.0.${NET[$n]}/24" dev eth0
    inside "$n" ip link set eth0 up
done
PG_LISTEN=10.77.0.10 inside d tests/pg_start.sh "$BASE/pg" >/dev/null || give_up "PostgreSQL does not start"
STORE_URL="postgres://postgres@10.77.0.10/arcus"
books_sql() { psql -qAt "postgres:///arcus?host=$BASE/pg&user=postgres" -c "$1"; }

curl() { inside k "$(type -P curl)" "$@"; }             # everything that asks does so from the clients' network
head_answers() { curl -fsSk --max-time 2 "${AT[$1]}/readyz"; }
head_start() { # head_start NAME [BINARY]
    local n=$1
    AT[$n]=https://10.77.0.${NET[$n]}:7000
    nsenter --net="/run/netns/$N$n" setpriv --pdeathsig TERM "${2:-$ARCUS}" server --data "$BASE/$n" --listen "10.77.0.${NET[$n]}:7000" --keys "$BASE/keys" \
        --default-image host --store "$STORE_URL" >>"$BASE/$n.log" 2>&1 </dev/null &
    PID[$n]=$!
    pids+=("$!")
    until_ok 30 head_answers "$n" || give_up "server $n does not answer: $(tail -n 3 "$BASE/$n.log" | tr '\n' ' ')"
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
OLD=${HEADS_OLD:-$ARCUS}
head_start a "$OLD"
KEY=$(cat "$BASE/a/admin.key")
head_start b "$OLD"
head_start c "$OLD"
until_ok 20 all_serve a
ok "three servers serve" all_serve a
URL=${AT[b]}
for r in 0 1 2 3; do call POST /v1/projects "{\"name\":\"reg-$r\"}"; done
is "a register is made through a server that does not write" "$STATUS" 201

# --- a node, a task that counts, and somebody who reads along
SERVERS=${AT[a]},${AT[b]},${AT[c]}
call POST /v1/nodes/tokens '{}'
nsenter --net="/run/netns/${N}g" setpriv --pdeathsig TERM "$ARCUS" agent --server "$SERVERS" --data "$BASE/node.data" --run "$BASE/node.run" --name "$NODE" --sim-gpus 1 --beat-ms 500 \
    --allow-host-image --token "$(field .token)" >>"$BASE/agent.log" 2>&1 </dev/null &
pids+=("$!")
until_ok 30 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/agent.log" | tr '\n' ' ')"
COUNTER=$(submit "$(sh_job 'n=0; while [ ! -e /outputs/end ]; do n=$((n + 1)); echo line $n; sleep 0.1; done')")
wait_for "$COUNTER" running 30
ATTEMPT=$(get "/v1/jobs/$COUNTER/attempts" | jq -r '.items[0].id')
nsenter --net="/run/netns/${N}k" env ARCUS_SERVER="$SERVERS" ARCUS_KEY="$KEY" ARCUS_CA="$BASE/keys/ca.pem" "$ARCUS" logs -f "$COUNTER" >"$BASE/followed" 2>"$BASE/followed.err" &
FOLLOWER=$!
pids+=("$FOLLOWER")

# --- the load, and what happens to the writer
FAULTS=() TABLE=()
for ((i = 0; i < ROUNDS; i++)); do FAULTS+=(replace kill pause cut); done
note "seed $SEED; again with: HEADS_SEED=$SEED HEADS_ROUNDS=$ROUNDS ./dev test 36-failover"
nsenter --net="/run/netns/${N}k" "$HEADS" load "$BASE/keys/ca.pem" "$KEY" $((${#FAULTS[@]} * 90 + 90)) "$SEED" "$BASE/history" "${AT[a]}" "${AT[b]}" "${AT[c]}" 2>"$BASE/load.err" &
LOAD=$!
pids+=("$LOAD")
until_ok 30 eval '[ "$(grep -c " 0$" "$BASE/history")" -gt 50 ]'
again() { GAP=$("$HEADS" gap "$BASE/history" "$1"); [ "$GAP" != -1 ]; }
for fault in "${FAULTS[@]}"; do
    until_ok 20 eval '[ -n "$(writer a)" ]'
    W=$(writer a) S=$(other "$W")
    if [ $fault = replace ]; then       # all three, one after the other, the writer among them
        FROM=$(now_us)
        for n in a b c; do
            stop "${PID[$n]}"
            is "replace: server $n leaves with 0" "$?" 0
            head_start "$n"
            until_ok 30 all_serve "$n"
        done
        sleep 2                         # what was asked meanwhile has its answer
        tries() { awk -v from="$FROM" -v most="$1" '$5 >= from && $1 == "submit" && $8 > most' "$BASE/history"; }
        note "of $(tries 0 | wc -l) submits during the replacement $(tries 1 | wc -l) were asked more than once, $(tries 2 | wc -l) more than twice"
        continue
    fi
    case $fault in
    kill) kill -9 "${PID[$W]}" ;;
    pause) kill -STOP "${PID[$W]}" ;;
    cut) inside x ip link set "v$W" down ;;
    esac
    T=$(now_us)
    until_ok 60 again "$T"
    ok "$fault: another server acknowledges a write" test "$GAP" -ge 0
    ok "$fault: it is another one" until_ok 20 eval "[ -n \"\$(writer $S)\" ] && [ \"\$(writer $S)\" != $W ]"
    TABLE+=("$fault $GAP")
    case $fault in
    kill) wait "${PID[$W]}" 2>/dev/null; head_start "$W" ;;
    pause) kill -CONT "${PID[$W]}" ;;
    cut) inside x ip link set "v$W" up ;;
    esac
    ok "$fault: who comes back serves" until_ok 30 head_answers "$W"
    until_ok 30 all_serve "$S"
done
for fault in kill pause cut; do
    note "ms to the next acknowledged write after $fault: $(printf '%s\n' "${TABLE[@]}" | awk -v f=$fault '$1 == f {print $2}' | sort -n | tr '\n' ' ')"
done
stop "$LOAD"

# --- the books
is "nothing was refused" "$(head -n 5 "$BASE/load.err")" ""
sed -i '$d' "$BASE/history"             # the last line may be cut short
is "the answers are those of one register" "$("$HEADS" check "$BASE/history")" ""
awk '$1 == "submit" && $7 == 0 && NF == 8 {print "j-" $2 "-" $4}' "$BASE/history" | sort >"$BASE/acknowledged"
books_sql "SELECT name FROM job WHERE name LIKE 'j-%'" | sort >"$BASE/there"
note "$(wc -l <"$BASE/acknowledged") submits were acknowledged, $(wc -l <"$BASE/history") questions answered in all"
is "every acknowledged job is there" "$(comm -23 "$BASE/acknowledged" "$BASE/there" | head -n 3)" ""
is "none is there twice" "$(uniq -d "$BASE/there" | head -n 3)" ""
is "the events are numbered without a gap" "$(books_sql "SELECT count(*) FROM event HAVING count(*) <> max(seq) - min(seq) + 1")" ""
is "the container ran on, its first attempt" "$(get "/v1/jobs/$COUNTER/attempts" | jq -r '[.items[] | .id + " " + .state] | join(",")')" "$ATTEMPT running"
touch "$BASE/node.data/outputs/$ATTEMPT/end"
is "... to a good end" "$(how "$COUNTER" 30)" "done succeeded 0"
until_ok 30 eval '! kill -0 "$FOLLOWER"'
awk '{print $2}' "$BASE/followed" >"$BASE/numbers"
is "who read its log along missed nothing and got nothing twice" "$(awk 'NR != $1' "$BASE/numbers" | head -n 3)" ""
ok "... and read on until the end" test "$(wc -l <"$BASE/numbers")" -gt 20
for n in a b c; do kill -TERM "${PID[$n]}" 2>/dev/null; done
for n in a b c; do wait "${PID[$n]}"; is "server $n leaves with 0" "$?" 0; done
UP=''
networks_down
finish
