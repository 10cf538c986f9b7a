#!/usr/bin/env bash
# 41-network.t - two nodes, a server and the world outside, each in a network namespace of its own. Tasks of a project reach each other and their gang on other
# nodes; then somebody in a container tries to reach what is not theirs: another project, the node, the server, metadata, private networks, a neighbour's
# name, all of the bandwidth. Each check is an attack whose guard was once taken away to see it fail.
. "$(dirname "$0")/lib.sh"
N=w$$
declare -A NET=([h]=10 [a]=11 [b]=12 [o]=20)
inside() { nsenter --net="/run/netns/$N$1" "${@:2}"; }
networks_down() { local n; for n in "${!NET[@]}" x; do ip netns del "$N$n" 2>/dev/null; done; }
trap 'networks_down; leave' EXIT
no_way() { skip "networks" "$1"; echo "1..$count"; said_plan=1; exit 0; }
ip netns add "${N}x" 2>/dev/null || no_way "no network namespaces here"
inside x ip link add bridge0 type bridge 2>/dev/null || no_way "no bridges here"
inside x ip link set bridge0 up
for n in "${!NET[@]}"; do
    ip netns add "$N$n"
    inside x ip link add "v$n" type veth peer name eth0 netns "$N$n"
    inside x ip link set "v$n" master bridge0 up
    inside "$n" ip link set lo up
    inside "$n" ip addr add "198.51.100.${NET[$n]}/24" dev eth0
    inside "$n" ip link set eth0 up
    [ "$n" = o ] || inside "$n" ip route add default via 198.51.100.20
done
inside o ip addr add 10.9.9.9/32 dev lo
inside o ip addr add 169.254.169.254/32 dev lo
inside o ip addr add 203.0.113.5/32 dev lo

# --- a cloud in it
curl() { inside h "$(type -P curl)" "$@"; }
arcus() { inside h "$ARCUS" "$@"; }
nsenter --net="/run/netns/${N}h" setpriv --pdeathsig TERM "$ARCUS" server --data "$DATA" --listen 198.51.100.10:7000 --default-image host >>"$BASE/server.log" 2>&1 </dev/null &
UP=$!
until_ok 20 answers || give_up "the server does not answer: $(tail -n 3 "$BASE/server.log" | tr '\n' ' ')"
URL=$(cat "$DATA/address") KEY=$(cat "$DATA/admin.key")
arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
node_start() { # node_start NAME FLAGS...
    nsenter --net="/run/netns/$N$1" setpriv --pdeathsig TERM "$ARCUS" agent --server "$URL" --data "$BASE/$1.data" --run "$BASE/$1.run" --name "$NODE-$1" --sim-gpus 2 --beat-ms 500 \
        --allow-host-image --uplink yes --underlay trusted "${@:2}" >>"$BASE/$1.log" 2>&1 </dev/null &
    AGENT=$!
    pids+=("$!")
}
for n in a b; do
    call POST /v1/nodes/tokens '{}'
    node_start $n --token "$(field .token)" ${BAD_PIN:-}
done
for n in a b; do until_ok 30 node_knows "$NODE-$n" || give_up "node $n does not come: $(tail -n 3 "$BASE/$n.log" | tr '\n' ' ')"; done
cannot=$(get "/v1/nodes/$NODE-a" | jq -r '.info.cannot[] | select(startswith("network"))')
[ "$(get "/v1/nodes/$NODE-a" | jq -r .info.network)" = true ] || no_way "$cannot"
note "cannot: $cannot"
is "both nodes tell where they are reached" "$(for n in a b; do get "/v1/nodes/$NODE-$n" | jq -r .info.underlay; done | tr '\n' ' ')" "198.51.100.11 198.51.100.12 "
for p in red blue; do call POST /v1/projects "{\"name\":\"$p\"}"; done
in_project() { jq -c . <<<"$1" >/dev/null; call POST "/v1/jobs?project=$2" "$1"; field .id; }
pjob() { get "/v1/jobs/$1?project=$2" | jq -r "$3"; }
start_in() { # start_in PROJECT SCRIPT [MORE]: runs until it is ended; ID
    ID=$(in_project "$(sh_job "$2" "${3:-{\}}")" "$1")
    until_ok 20 eval '[ "$(pjob $ID '"$1"' .state)" = running ]' || note "$ID is $(pjob "$ID" "$1" '.state + .reason + .detail')"
}
try_in() { # try_in PROJECT SCRIPT [MORE]: to its end; OUT, CODE
    ID=$(in_project "$(sh_job "$2" "${3:-{\}}")" "$1")
    until_ok 40 eval '[[ " done failed cancelled " == *" $(pjob $ID '"$1"' .state) "* ]]'
    OUT=$(get "/v1/jobs/$ID/logs?project=$1") CODE=$(pjob "$ID" "$1" .exit_code)
}
last_attempt() { get "/v1/jobs/$ID/attempts?project=red" | jq -r ".items[0].id"; }
address_of() { sql "SELECT lease FROM attempt WHERE id = (SELECT max(id) FROM attempt) " | jq -r .address; }
on_a="{\"node\":\"$NODE-a\"}" on_b="{\"node\":\"$NODE-b\"}"
# Somebody who asks everywhere at once: a line for each address that answers, sorted.
cat >"$BASE/ask.pl" <<'EOF'
use IO::Socket::INET;
for my $at (@ARGV) {
    next if fork;
    my $c = IO::Socket::INET->new(PeerAddr => $at, Timeout => 2) or exit;
    my $rows = '';
    vec($rows, fileno $c, 1) = 1;
    my $word = select($rows, undef, undef, 2) ? <$c> : undef; # some wait for us to speak first
    print "$at ", $word // "connected\n";
    exit;
}
1 while wait != -1;
EOF
cat >"$BASE/serve.pl" <<'EOF'
use IO::Socket::INET;
my ($at, $word) = @ARGV;
my $l = IO::Socket::INET->new(LocalAddr => $at, Listen => 16, ReuseAddr => 1) or die;
while (my $c = $l->accept) { print $c "$word\n"; close $c }
EOF
ASK=$(base64 -w0 "$BASE/ask.pl") SERVE=$(base64 -w0 "$BASE/serve.pl")
ask() { printf 'echo %s | base64 -d >/tmp/ask.pl; perl /tmp/ask.pl %s | sort' "$ASK" "$*"; }           # ask ADDRESS:PORT...: as a script
serving() { printf 'echo %s | base64 -d >/tmp/serve.pl; perl /tmp/serve.pl 0.0.0.0:5000 %s & sleep 600' "$SERVE" "$1"; }
serve() { inside "$1" setpriv --pdeathsig TERM perl "$BASE/serve.pl" "$2" "$3" & pids+=($!); }          # serve WHERE ADDRESS:PORT WORD
answered() { # answered NAME ADDRESS:PORT [WORD]: what the last job heard from there; no word: nothing
    is "$1" "$(grep -F "$2 " <<<"$OUT" | cut -d ' ' -f 2)" "${3:-}"
}

# --- a network of its own
start_in red "$(serving red)" "$on_a"
RED=$(address_of) JOBS=("red $ID") RED_ATTEMPT=$(last_attempt)
like "a task has an address of its project" "$RED" '^100\.64\.16\.'
is "the project shows its range" "$(get /v1/projects/red | jq -r '.network + " " + .egress')" "100.64.16.0/20 all"
serve o 203.0.113.5:8080 outside
serve o 10.9.9.9:8080 private
serve o 169.254.169.254:80 metadata
serve a 198.51.100.11:8081 node
serve a 0.0.0.0:8082 node
UPLINK=$(inside a ip -o -4 addr show | sed -n 's/.*inet \(169\.254[^/]*\).*/\1/p')
EVERYWHERE="$RED:5000 203.0.113.5:8080 10.9.9.9:8080 169.254.169.254:80 198.51.100.11:8081 198.51.100.11:8082 $UPLINK:8082 100.64.16.1:8082 100.64.16.1:5000 198.51.100.10:7000"
heard_all() { [ "$(inside a perl "$BASE/ask.pl" 203.0.113.5:8080 10.9.9.9:8080 169.254.169.254:80 198.51.100.11:8081 "$UPLINK:8082" 198.51.100.10:7000 | wc -l)" = 6 ]; }
ok "on the node all of these answer" until_ok 10 heard_all
try_in red "ls /sys/class/net | tr '\n' ' '; hostname -i; $(ask "$EVERYWHERE")" "$on_a"
like "it has one link, and its name is its address" "$OUT" $'^eth0 lo 100\\.64\\.16\\.[0-9]+\n'
answered "another task of the project is reached" "$RED:5000" red
answered "the public network is reached" 203.0.113.5:8080 outside
answered "refused: a private network of the operator's" 10.9.9.9:8080
answered "refused: the metadata service of a cloud around us" 169.254.169.254:80
answered "refused: a service on the node's address" 198.51.100.11:8081
answered "refused: one that listens on all of the node's addresses" 198.51.100.11:8082
answered "refused: ... asked by the address of the uplink" "$UPLINK:8082"
answered "refused: ... asked by the gateway" 100.64.16.1:8082
answered "refused: the server's API" 198.51.100.10:7000

# --- another project
try_in blue "$(ask "$EVERYWHERE")" "$on_a"
answered "refused: another project's address on the same node" "$RED:5000"
answered "... which has a way out of its own" 203.0.113.5:8080 outside
try_in blue "$(ask "$RED:5000")" "$on_b"
answered "refused: another project's address on another node" "$RED:5000"

for j in "${JOBS[@]}"; do call POST "/v1/jobs/${j#* }/cancel?project=${j% *}" '{"grace":"0s"}'; done
for j in "${JOBS[@]}"; do until_ok 20 eval '[ "$(pjob '"${j#* } ${j% *}"' .state)" = cancelled ]'; done
finish
