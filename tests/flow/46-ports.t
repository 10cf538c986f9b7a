#!/usr/bin/env bash
# 46-ports.t - `arcus port-forward`: ports of a task on this machine, through the server and the node's tunnel. Bytes, half-closes, many at once; what it
# does not reach: the node, another task, another project.
. "$(dirname "$0")/lib.sh"
cloud_up
cat >"$BASE/serve.pl" <<'EOF2'
use strict; use IO::Socket::INET; $| = 1; $SIG{CHLD} = 'IGNORE'; $SIG{TERM} = sub { exit 0 };
my %port = (echo => 7001, count => 7002, source => 7003);
for my $what (sort keys %port) {
    my $l = IO::Socket::INET->new(Listen => 1024, LocalAddr => '127.0.0.1', LocalPort => $port{$what}) or die;
    next if fork;
    while (my $c = $l->accept) {
        next if fork;
        close $l;
        my ($n, $b) = (0, '');
        if ($what eq 'source') { print $c 'x' x 65536 for 1 .. 64; exit 0 }
        while (my $m = sysread $c, $b, 65536) { $n += $m; print $c $b if $what eq 'echo'; $c->flush }
        print $c "got $n\n" if $what eq 'count';
        exit 0;
    }
}
print "serving\n";
sleep 1 while 1;
EOF2
cat >"$BASE/talk.pl" <<'EOF2'
# talk.pl PORT: standard input there, a half-close, then what comes back
use strict; use IO::Socket::INET;
my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => shift, Timeout => 10) or die "refused\n";
if (my $pid = fork) { my $b; print $b while sysread $c, $b, 65536; waitpid $pid, 0 }
else { my $b; while (sysread STDIN, $b, 65536) { print $c $b } $c->flush; shutdown $c, 1 }
EOF2
talk() { timeout 60 perl "$BASE/talk.pl" "$1"; }
JOB=$(submit "$(jq -nc --rawfile s "$BASE/serve.pl" '{name: "web", command: ["perl", "-e", $s], cpus: 1, memory: "512MB"}')")
wait_for "$JOB" running
until_ok 60 has_said "$JOB" serving
port_of() { sed -n "s/^Forwarding from 127.0.0.1:\([0-9]*\) -> $1\$/\1/p" "$BASE/$2.out"; }
forward() { # forward NAME PORT...: in the background, once it listens
    local name=$1
    shift
    "$ARCUS" port-forward "${WHERE:-web}" "${@/#/:}" >"$BASE/$name.out" 2>"$BASE/$name.err" &
    FORWARD=$!
    pids+=($FORWARD)
    until_ok 60 eval "[ \$(grep -c Forwarding $BASE/$name.out) = $# ] || ! kill -0 $FORWARD"
}
forward first 7001 7002 7003 7999
E=$(port_of 7001 first) C=$(port_of 7002 first) S=$(port_of 7003 first) X=$(port_of 7999 first)
is "it says which ports it took, one line each" "$(sed 's/:[0-9]* / /' "$BASE/first.out" | sort)" "Forwarding from 127.0.0.1 -> 7001
Forwarding from 127.0.0.1 -> 7002
Forwarding from 127.0.0.1 -> 7003
Forwarding from 127.0.0.1 -> 7999"
is "bytes go in and come back" "$(echo hello | talk "$E")" hello
head -c 4000000 /dev/urandom >"$BASE/bytes"
is "a half-close goes through, and the answer behind it comes back" "$(talk "$C" <"$BASE/bytes")" "got 4000000"
is "four million bytes there and back, unchanged" "$(talk "$E" <"$BASE/bytes" | sha256sum)" "$(sha256sum <"$BASE/bytes")"
is "a task that sends and closes is heard to the end" "$(talk "$S" </dev/null | wc -c)" 4194304
is "a reader who leaves early hurts nobody" "$(talk "$S" </dev/null | head -c 100 | wc -c)|$(echo still | talk "$E")" "100|still"
is "a port that nobody listens on is closed at once" "$(echo x | talk "$X" | wc -c)" 0
until_ok 60 grep -q 7999 "$BASE/first.err"
like "... and why is said" "$(cat "$BASE/first.err")" 'port 7999: nothing in the task listens on port 7999'

# --- several at once, and one that does not read
for i in 1 2 3 4 5 6 7 8; do (head -c 300000 "$BASE/bytes" | talk "$E" | sha256sum >"$BASE/many.$i") & many[i]=$!; done
for i in 1 2 3 4 5 6 7 8; do wait "${many[i]}"; done
is "eight at once do not mix" "$(sort -u "$BASE"/many.* | wc -l) $(sort -u "$BASE"/many.*)" "1 $(head -c 300000 "$BASE/bytes" | sha256sum)"
perl -MIO::Socket::INET -e '$c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => shift); sleep 120' "$S" &
LAZY=$!
pids+=($LAZY)
is "one that does not read does not hold up the others" "$(echo quick | talk "$E")" quick
stop $LAZY

# --- what it does not reach
perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1"); print $l->sockport, "\n"; STDOUT->flush; while ($c = $l->accept) { print $c "of the node\n" }' >"$BASE/node.port" &
pids+=($!)
until_ok 60 test -s "$BASE/node.port"
NODE_PORT=$(cat "$BASE/node.port")
forward node "$NODE_PORT"
is "a service of the node is not the task's: its port is refused" "$(talk "$(port_of "$NODE_PORT" node)" </dev/null)|$(until_ok 60 grep -q listens "$BASE/node.err" && grep -c 'nothing in the task listens' "$BASE/node.err")" "|1"
stop $FORWARD
OTHER=$(submit "$(sh_job 'sleep 1000' '{"name":"other"}')")
wait_for "$OTHER" running
WHERE=other forward other 7001
is "... and so is a port of another task" "$(talk "$(port_of 7001 other)" </dev/null)|$(until_ok 60 grep -q listens "$BASE/other.err" && grep -c 'nothing in the task listens' "$BASE/other.err")" "|1"
stop $FORWARD
is "it leaves with 0 when it is told to" $? 0
arcus orgs create far >/dev/null; arcus projects create foreign --org far >/dev/null
printf 'password-of-eve' | arcus users create eve --password-stdin >/dev/null
printf 'password-of-vic' | arcus users create vic --password-stdin >/dev/null
arcus members set eve admin --project foreign >/dev/null
arcus members set vic viewer >/dev/null
for who in "eve foreign" "vic default"; do printf 'password-of-%s' "${who% *}" | ARCUS_CONFIG=$BASE/${who% *}.config "$ARCUS" login --server "$URL" --user "${who% *}" --project "${who#* }" >/dev/null 2>&1; done
ARCUS_CONFIG=$BASE/eve.config "$ARCUS" port-forward web :7001 >"$BASE/eve.out" 2>&1
is "another project cannot" "$? $(grep -c Forwarding "$BASE/eve.out")" "4 0"
key_of() { ARCUS_CONFIG=$BASE/$1.config "$ARCUS" keys create for-curl -o json | jq -r .key; }
dial() { # dial KEY QUERY: the status of a WebSocket that is asked for by hand
    curl -sk -o "$BASE/body" -w '%{http_code}' --max-time 10 -H "Authorization: Bearer $1" -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' \
        -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' "$URL/v1/jobs/$JOB/dial?$2"
}
is "... nor by its id over HTTP" "$(dial "$(key_of eve)" port=7001)" 404
is "a viewer may not" "$(dial "$(key_of vic)" port=7001)" 403
is "a port that is none is refused" "$(dial "$KEY" port=0) $(dial "$KEY" port=65536) $(dial "$KEY" port=x) $(dial "$KEY" '')" "400 400 400 400"
is "no other address can be asked for" "$(dial "$KEY" 'port=7001&host=10.0.0.1')" 400
for bad_port in x 0 :0 8080: 70000 1:2:3 -1 8080:x; do arcus port-forward web -- "$bad_port" >/dev/null 2>&1 && echo "$bad_port"; done >"$BASE/taken"
is "what is no port is refused" "$(cat "$BASE/taken")" ""

# --- a thousand
cat >"$BASE/crowd.pl" <<'EOF2'
# crowd.pl PORT COUNT: so many connections, all held open; how many answered, and how many were told no
use strict; use IO::Socket::INET; use IO::Select;
my ($port, $count) = @ARGV; my ($answered, $closed, $s) = (0, 0, IO::Select->new);
for (1 .. $count) { my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or next; syswrite $c, "hi\n"; $s->add($c) }
my $end = time + 100;
while ($answered + $closed < $count && time < $end) { for my $c ($s->can_read(1)) { my $n = sysread $c, my $b, 100; $n ? $answered++ : $closed++; $s->remove($c); push our @held, $c if $n } }
print "$answered $closed\n";
EOF2
# shellcheck disable=SC3045
( ulimit -n 4096 2>/dev/null; timeout 120 perl "$BASE/crowd.pl" "$E" 1000 ) >"$BASE/crowd"
read -r answered closed <"$BASE/crowd"
is "of a thousand at once each is served or closed" "$((answered + closed))" 1000
within "... as many as a task may have are served" "$answered" 100 256
until_ok 60 arcus exec web -- true </dev/null    # a connection that has gone counts until the server has seen it
is "the node is alive and so is the task" "$(arcus exec web -- echo here 2>&1 </dev/null)" here
until_ok 60 eval '[ "$(echo again | perl "$BASE/talk.pl" "$E")" = again ]'
is "and when they have gone there is room again" "$(echo again | talk "$E")" again

# --- the end
call POST "/v1/jobs/$JOB/cancel" '{"grace":"0s"}'
wait_end "$JOB"
is "a connection to a task that has ended is closed" "$(echo x | talk "$E" | wc -c)" 0
arcus port-forward web 7001 >/dev/null 2>"$BASE/err"
is "and it is said beforehand" "$? $(cat "$BASE/err")" "5 arcus: web is cancelled: its ports can be reached while it runs"
finish
