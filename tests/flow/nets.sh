# nets.sh - for flows that need several machines: each is a network namespace with one link into a common network. Sourced behind lib.sh.
# The flow says which there are (NET: a letter -> the last part of its address) and what its names begin with (N), then calls networks_up.
# shellcheck shell=bash
inside() { nsenter --net="/run/netns/$N$1" "${@:2}"; }     # inside NAME COMMAND...: ip netns would hide /sys/fs/cgroup
networks_down() { local n; for n in "${!NET[@]}" x; do ip netns del "$N$n" 2>/dev/null; done; }
no_way() { skip "networks" "$1"; echo "1..$count"; said_plan=1; exit 0; }
networks_up() { # networks_up FIRST-THREE-PARTS
    local n
    trap 'networks_down; leave' EXIT
    ip netns add "${N}x" 2>/dev/null || no_way "no network namespaces here"
    inside x ip link add bridge0 type bridge 2>/dev/null || no_way "no bridges here"
    inside x ip link set bridge0 up
    for n in "${!NET[@]}"; do
        ip netns add "$N$n"
        inside x ip link add "v$n" type veth peer name eth0 netns "$N$n"
        inside x ip link set "v$n" master bridge0 up
        inside "$n" ip link set lo up
        inside "$n" ip addr add "$1.${NET[$n]}/24" dev eth0
        inside "$n" ip link set eth0 up
    done
}
declare -A AGENTS
node_in() { # node_in NAME FLAGS...: an agent there
    nsenter --net="/run/netns/$N$1" setpriv --pdeathsig TERM "$ARCUS" agent --server "$URL" --data "$BASE/$1.data" --run "$BASE/$1.run" --name "$NODE-$1" --sim-gpus 2 --beat-ms 500 \
        --allow-host-image --underlay trusted "${@:2}" >>"$BASE/$1.log" 2>&1 </dev/null &
    AGENTS[$1]=$!
    pids+=("$!")
}
nodes_come() { # nodes_come NAMES...: waits for them
    local n
    for n in "$@"; do until_ok 60 node_knows "$NODE-$n" || give_up "node $n does not come: $(tail -n 3 "$BASE/$n.log" | tr '\n' ' ')"; done
    [ "$(get "/v1/nodes/$NODE-$1" | jq -r .info.network)" = true ] || no_way "$(get "/v1/nodes/$NODE-$1" | jq -r '.info.cannot[] | select(startswith("network"))')"
}
cloud_in() { # cloud_in NAME ADDRESS:PORT: a server there, from where everything is asked
    eval "curl() { inside $1 $(type -P curl) \"\$@\"; }; arcus() { inside $1 \"\$ARCUS\" \"\$@\"; }"
    nsenter --net="/run/netns/$N$1" setpriv --pdeathsig TERM "$ARCUS" server --data "$DATA" --listen "$2" --default-image host >>"$BASE/server.log" 2>&1 </dev/null &
    UP=$!
    until_ok 60 answers || give_up "the server does not answer: $(tail -n 3 "$BASE/server.log" | tr '\n' ' ')"
    URL=$(cat "$DATA/address") KEY=$(cat "$DATA/admin.key")
    arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
}
