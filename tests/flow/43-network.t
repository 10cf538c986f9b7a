#!/usr/bin/env bash
# 43-network.t - two nodes, a server and the world outside, each in a network namespace of its own. Tasks of a project reach each other and their gang on other
# nodes; then somebody in a container tries to reach what is not theirs: another project, the node, the server, metadata, private networks, a neighbour's
# name, all of the bandwidth. Each check is an attack whose guard was once taken away to see it fail.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nets.sh"
N=w$$
declare -A NET=([h]=10 [a]=11 [b]=12 [o]=20)
networks_up 198.51.100
for n in h a b; do inside $n ip route add default via 198.51.100.20; done
inside o ip addr add 10.9.9.9/32 dev lo
inside o ip addr add 169.254.169.254/32 dev lo
inside o ip addr add 203.0.113.5/32 dev lo

# --- a cloud in it
node_start() { node_in "$1" --uplink yes "${@:2}"; }
cloud_in h 198.51.100.10:7000
for n in a b; do
    call POST /v1/nodes/tokens '{}'
    node_start $n --token "$(field .token)" ${BAD_PIN:-}
done
nodes_come a b
cannot=$(get "/v1/nodes/$NODE-a" | jq -r '.info.cannot[] | select(startswith("network"))')
note "cannot: $cannot"
is "both nodes tell where they are reached" "$(for n in a b; do get "/v1/nodes/$NODE-$n" | jq -r .info.underlay; done | tr '\n' ' ')" "198.51.100.11 198.51.100.12 "
for p in red blue; do call POST /v1/projects "{\"name\":\"$p\"}"; done
in_project() { jq -c . <<<"$1" >/dev/null; call POST "/v1/jobs?project=$2" "$1"; field .id; }
pjob() { get "/v1/jobs/$1?project=$2" | jq -r "$3"; }
start_in() { # start_in PROJECT SCRIPT [MORE]: runs until it is ended; ID
    ID=$(in_project "$(sh_job "$2" "${3:-{\}}")" "$1")
    until_ok 60 eval '[ "$(pjob $ID '"$1"' .state)" = running ]' || note "$ID is $(pjob "$ID" "$1" '.state + .reason + .detail')"
}
try_in() { # try_in PROJECT SCRIPT [MORE]: to its end; OUT, CODE
    ID=$(in_project "$(sh_job "$2" "${3:-{\}}")" "$1")
    until_ok 120 eval '[[ " done failed cancelled " == *" $(pjob $ID '"$1"' .state) "* ]]'
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
    my $word = select($rows, undef, undef, $at =~ /:7000$/ ? 1 : 20) ? <$c> : undef; # the server waits for us to speak first
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
serving() { printf 'echo %s | base64 -d >/tmp/serve.pl; perl /tmp/serve.pl 0.0.0.0:5000 %s & until grep -q :1388 /proc/net/tcp; do sleep 0.1; done; echo serves; sleep 600' "$SERVE" "$1"; }
until_serves() { until_ok 60 eval 'get "/v1/jobs/$ID/logs?project=red" | grep -q serves'; }
serve() { inside "$1" setpriv --pdeathsig TERM perl "$BASE/serve.pl" "$2" "$3" & pids+=($!); }          # serve WHERE ADDRESS:PORT WORD
answered() { # answered NAME ADDRESS:PORT [WORD]: what the last job heard from there; no word: nothing
    is "$1" "$(grep -F "$2 " <<<"$OUT" | cut -d ' ' -f 2)" "${3:-}"
}

# --- a network of its own
start_in red "$(serving red)" "$on_a"
until_serves
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
ok "on the node all of these answer" until_ok 60 heard_all
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

# --- one network over both nodes, also for those that are no gang
patient() { printf '%s; for i in $(seq 100); do perl /tmp/ask.pl %s | grep . && exit; sleep 0.1; done' "$(ask)" "$1"; }
start_in red "$(serving far)" "$on_b"
until_serves
FAR=$(address_of) FAR_JOB=$ID
try_in red "$(patient "$FAR:5000")" "$on_a"
answered "a task of the project on another node is reached" "$FAR:5000" far
try_in red "$(patient "$RED:5000")" "$on_b"
answered "... and from there the first" "$RED:5000" red

# --- where a project may go, also while its tasks run
ID=$(in_project "$(sh_job "$(ask); while :; do echo now; perl /tmp/ask.pl 203.0.113.5:8080 10.9.9.9:8080; sleep 0.2; done" "$on_a")" blue)
JOBS+=("blue $ID") ROAMER=$ID
hears() { [ "$(get "/v1/jobs/$ROAMER/logs?project=blue" | tail -n 6 | grep -v now | cut -d ' ' -f 2 | sort -u | tr '\n' ' ')" = "$1" ]; }
hears_nothing() { hears '' && get "/v1/jobs/$ROAMER/logs?project=blue" | tail -n 6 | grep -q now; }
ok "at first it goes to the public network alone" until_ok 60 hears 'outside '
call PATCH /v1/projects/blue '{"egress":"10.9.9.0/24"}'
ok "... then to the network that it is given, and nowhere else" until_ok 60 hears 'private '
call PATCH /v1/projects/blue '{"egress":"none"}'
ok "... then nowhere" until_ok 60 hears_nothing
call PATCH /v1/projects/blue '{"egress":"all"}'
until_ok 60 hears 'outside ' || note "it does not go out again"
again() { kill -9 "${AGENTS[a]}"; wait "${AGENTS[a]}" 2>/dev/null; "${1:-true}"; node_start a "${@:2}"; }   # again [MEANWHILE [FLAGS...]]: node a has a new agent, tasks stay
close_blue() { call PATCH /v1/projects/blue '{"egress":"none"}'; }
again close_blue
ok "... then nowhere, though the agent was away as that was said" until_ok 60 hears_nothing
try_in red "$(patient "$RED:5000")" "$on_b"
answered "its agent was replaced, and it is reached from the other node again" "$RED:5000" red
try_in blue "$(ask "$RED:5000 $FAR:5000")" "$on_b"
is "refused: another project's addresses, though it is on both nodes too" "$OUT" ""
call PATCH /v1/projects/blue '{"egress":"10.9.9.9/24"}'
refused "what is no network is refused" 400 bad_input 10.9.9.9/24

# --- a gang: it reaches itself over both nodes, and knows how
MEET='echo "$NODE_RANK of $NUM_NODES: $RANK/$WORLD_SIZE $LOCAL_RANK $SLURM_PROCID/$SLURM_NTASKS $MASTER_ADDR:$MASTER_PORT $ARCUS_NODE_IPS" $SKYPILOT_NODE_IPS; if [ $RANK = 0 ]; then
    perl -MIO::Socket::INET -e '"'"'my $l = IO::Socket::INET->new(LocalAddr => "0.0.0.0:29500", Listen => 1, ReuseAddr => 1) or die; my $c = $l->accept; print $c "met\n"'"'"'
else '"$(ask)"'; for i in $(seq 100); do perl /tmp/ask.pl $MASTER_ADDR:$MASTER_PORT | grep met && exit 0; sleep 0.1; done; exit 4; fi'
GANG=$(in_project "$(sh_job "$MEET" '{"nodes":2,"gpus":1}')" red)
until_ok 60 eval '[[ " done failed cancelled " == *" $(pjob $GANG red .state) "* ]]'
is "a gang meets over two nodes" "$(pjob "$GANG" red .state) $(get "/v1/jobs/$GANG/logs?project=red&task=1" | grep -o 'met$')" "done met"
like "... and each knows its rank and all addresses" "$(get "/v1/jobs/$GANG/logs?project=red&task=1" | head -n 1)" '^1 of 2: 1/2 0 1/2 (100\.64\.16\.[0-9]+):29500 (\1),(100\.64\.16\.[0-9]+) \1 \3$'

# --- tricks
start_in red "exec perl -MIO::Socket::INET -e '\$| = 1; my \$s = IO::Socket::INET->new(LocalAddr => \"0.0.0.0:7000\", Proto => \"udp\") or die; print \"open\n\"; while (my \$from = \$s->recv(my \$w, 99)) { print \$s->peerhost, \" \$w\n\" }'" "$on_a"
VICTIM=$(address_of) VICTIM_JOB=$ID JOBS+=("red $ID")
start_in red 'sleep 600' "$on_a"
MALLORY=$(address_of) JOBS+=("red $ID")
pid=$(first_pid "$(last_attempt)")
as_mallory() { nsenter --net="/proc/$pid/ns/net" "$@"; }       # with rights that it never has: the guard is behind them
say() { as_mallory perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => $ARGV[0], PeerAddr => $ARGV[1], Proto => "udp") or die; $s->send($ARGV[2]) for 1 .. 3' "$1" "$VICTIM:7000" "$2"; }
heard() { get "/v1/jobs/$VICTIM_JOB/logs?project=red" | grep "$1"; }
says() { say "$MALLORY" "$1"; heard "^$MALLORY $1"; }
until_ok 60 heard open
ok "a neighbour is heard under its own name" until_ok 60 says honest
as_mallory ip addr add "$RED/32" dev eth0
say "$RED" lie
mac=$(as_mallory ip -o link show eth0 | sed 's/.*ether \([0-9a-f:]*\).*/\1/')
as_mallory ip link set eth0 address 02:a7:00:00:00:09
say "$MALLORY" mask
as_mallory ip link set eth0 address "$mac"
as_mallory ip neigh flush dev eth0
ok "... and heard again after all of this" until_ok 60 says last
is "refused: a neighbour's address as one's own" "$(heard lie)" ""
is "refused: another hardware address than one's own" "$(heard mask)" ""
inside o ip route add 100.64.0.0/10 via 198.51.100.11
is "refused: to serve on the node, or through it" "$(inside o perl "$BASE/ask.pl" 198.51.100.11:5000 "$RED:5000" "$UPLINK:5000")" ""
inside o perl -MIO::Socket::INET -e '$| = 1; for my $p (4789, 4790) { next if fork; my $s = IO::Socket::INET->new(LocalAddr => "203.0.113.5:$p", Proto => "udp") or die; while ($s->recv(my $w, 99)) { print "$p $w\n" } } sleep 600' >"$BASE/udp" 2>&1 &
pids+=($!)
until_ok 60 eval 'inside o ss -uln | grep -q 203.0.113.5:4790'
until_ok 60 eval 'try_in red "perl -MIO::Socket::INET -e '"'"'for my \$p (4789, 4790) { IO::Socket::INET->new(PeerAddr => \"203.0.113.5:\$p\", Proto => \"udp\")->send(\"frame\") for 1 .. 3 }'"'"'" "$on_a"; grep -q 4790 "$BASE/udp"'
is "refused: frames that other nodes would take for ours" "$(sort -u "$BASE/udp")" "4790 frame"

# A frame for the victim in a tunnel of its project: from whom, to which address of the node, with which word.
cat >"$BASE/frame.pl" <<'EOF'
use IO::Socket::INET;
my ($to, $victim, $word) = @ARGV;
my ($dst, $src) = (inet_aton($victim), inet_aton("100.64.16.250"));
my $udp = pack("nnnn", 7000, 7000, 8 + length $word, 0) . $word;
my $ip = pack("CCnnnCCn", 0x45, 0, 20 + length $udp, 7, 0, 64, 17, 0) . $src . $dst;
my $sum = 0;
$sum += $_ for unpack "n*", $ip;
$sum = ($sum & 0xffff) + ($sum >> 16) for 1, 2;
substr($ip, 10, 2) = pack "n", ~$sum & 0xffff;
my $s = IO::Socket::INET->new(PeerAddr => "$to:4789", Proto => "udp") or die;
$s->send(pack("NN", 0x08000000, 1 << 8) . "\x02\xa7$dst\x02\xa7$src\x08\0" . $ip . $udp) for 1 .. 3;
EOF
inside a ip addr add 198.51.100.31/24 dev eth0
inside o perl "$BASE/frame.pl" 198.51.100.11 "$VICTIM" stranger
inside b perl "$BASE/frame.pl" 198.51.100.31 "$VICTIM" sidedoor
peer_is_heard() { inside b perl "$BASE/frame.pl" 198.51.100.11 "$VICTIM" peer; heard "^100.64.16.250 peer"; }
ok "a node that has tasks of the same project is heard in the tunnel" until_ok 60 peer_is_heard
is "refused: frames from who is none" "$(heard stranger)" ""
is "refused: frames to another address of the node" "$(heard sidedoor)" ""
call POST "/v1/jobs/$FAR_JOB/cancel?project=red" '{"grace":"0s"}'
frames=0
is_deaf() { inside b perl "$BASE/frame.pl" 198.51.100.11 "$VICTIM" "late$((++frames))"; say "$MALLORY" "mark$frames"; until_ok 60 heard "mark$frames"; [ -z "$(heard "late$frames\$")" ]; }
ok "... and no more when its last one has ended" until_ok 60 is_deaf

try_in red "perl -MSocket -e 'socket my \$s, PF_INET, SOCK_DGRAM, 0; send \$s, 1, 0, sockaddr_in(\$_, inet_aton(\"203.0.113.5\")) for 10000 .. 25000'" "{\"node\":\"$NODE-a\",\"cpus\":1}"
# What has expired (30 s) is counted by the kernel until it happens to look, so a slow machine shows more than the 8192 that are let through, of 15001.
within "refused: to fill the node's table of connections" "$(inside a cat /proc/sys/net/netfilter/nf_conntrack_count)" 100 12000

# --- a flood: 8 Mbit/s for each task, whatever its neighbours do
call PATCH /v1/projects/red '{"bandwidth":8}'
cat >"$BASE/sink.pl" <<'EOF'
use IO::Socket::INET; use Time::HiRes 'time';
$| = 1, $SIG{CHLD} = 'IGNORE';
if ($ARGV[0]) {
    my $u = IO::Socket::INET->new(LocalAddr => "203.0.113.5:9001", Proto => "udp") or die;
    my ($from, $bytes, $n) = (0, 0, 0);
    while (1) { # since the first: what waits here while others have the processor is no rate
        $u->recv(my $w, 2000);
        $from ||= time;
        $bytes += 28 + length $w;
        printf "udp %d\n", $bytes * 8 / (time - $from) / 1000 if time - $from > 2 * $n + 2 && ++$n;
    }
}
my $l = IO::Socket::INET->new(LocalAddr => "203.0.113.5:9000", Listen => 4, ReuseAddr => 1) or die;
print "ready\n";
while (my $c = $l->accept) { # the first half second is what the bucket held; a task that is gone says no goodbye
    next if fork;
    my ($bytes, $from, $last, $rows) = (0, 0, 0, '');
    vec($rows, fileno $c, 1) = 1;
    while (select(my $ready = $rows, undef, undef, 1) && sysread $c, my $w, 65536) {
        $last = time;
        $from ||= $last + 0.5;
        $bytes += length $w if $last > $from;
    }
    printf "tcp %d\n", $bytes * 8 / ($last - $from) / 1000 if $last > $from + 1;
    exit;
}
EOF
for what in 0 1; do
    inside o setpriv --pdeathsig TERM perl "$BASE/sink.pl" $what >>"$BASE/sink" 2>&1 &
    pids+=($!)
done
until_ok 60 grep -q ready "$BASE/sink"
SEND="perl -MIO::Socket::INET -MTime::HiRes=time -e 'my \$c = IO::Socket::INET->new(PeerAddr => \"203.0.113.5:9000\", Timeout => 5) or die; my \$end = time + 3; while (time < \$end) { syswrite \$c, \"x\" x 16384 }'"
start_in red "exec perl -MIO::Socket::INET -e 'my \$s = IO::Socket::INET->new(PeerAddr => \"203.0.113.5:9001\", Proto => \"udp\"); while (1) { \$s->send(\"x\" x 1400) }'" "$on_a"
JOBS+=("red $ID")
until_ok 60 grep -q udp "$BASE/sink"
beside_flood() { local n; n=$(grep -c tcp "$BASE/sink"); try_in red "$SEND" "$on_a"; until_ok 10 eval "[ \"\$(grep -c tcp \"\$BASE/sink\")\" -gt $n ]"; [ "$(sed -n 's/^tcp //p' "$BASE/sink" | tail -n 1)" -ge 7220 ]; }    # 95 % of 8 Mbit/s, less the heads of its packets
ok "a neighbour of a flood keeps 95 % of what it was given" eval 'for i in 1 2 3 4 5 6; do beside_flood && break; done'
note "beside the flood, kbit/s: $(tr '\n' ' ' <"$BASE/sink")"
within "... and the flood gets no more than that itself" "$(sed -n 's/^udp //p' "$BASE/sink" | tail -n 1)" 1000 9000

for j in "${JOBS[@]}"; do call POST "/v1/jobs/${j#* }/cancel?project=${j% *}" '{"grace":"0s"}'; done
for j in "${JOBS[@]}"; do until_ok 60 eval '[ "$(pjob '"${j#* } ${j% *}"' .state)" = cancelled ]'; done
finish
