#!/usr/bin/env bash
# 13-trust.t - a node is trusted with its own tasks and nothing else: what a hostile one with a good key can say, and what comes of it. Join tokens, and
# keys that are replaced while the node works.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
server_start server --listen 127.0.0.1:0 --default-image host --lease 60
arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
PORT=${URL##*:}
GOOD=$NODE-good EVIL=$NODE-evil
agent_start "$GOOD" --sim-gpus 1 --beat-ms 500 --token "$(arcus nodes token -o json | jq -r .token)"
until_ok 20 node_knows "$GOOD" || give_up "the node does not come: $(tail -n 3 "$BASE/$GOOD.log")"

# --- tokens
nk() { echo "nk_$(head -c 300 /dev/urandom | base64 -w0 | tr -dc A-Za-z0-9 | head -c 43)"; }
join() { call POST /v1/nodes/join "$(jq -nc --arg t "$1" --arg n "$2" --arg k "$3" '{token: $t, name: $n, key: $k}')"; }
TOKEN=$(arcus nodes token -o json | jq -r .token)
within "a token is good for an hour" $(($(date -d "$(arcus nodes token -o json | jq -r .expires)" +%s) - $(date +%s))) 3500 3600
arcus nodes token --expires-in 25h >/dev/null 2>&1
is "... and never for more than a day" $? 2
EVIL_KEY=$(nk)
join "$TOKEN" "$EVIL" "$EVIL_KEY"
answer "who holds a token becomes a node" 201 "$EVIL" .name
ID=$(field .id)
join "$TOKEN" "$EVIL" "$EVIL_KEY"
answer "... and may ask again, if the answer was lost" 201 "$ID" .id
join "$TOKEN" "$EVIL-thief" "$(nk)"
refused "somebody else with the same token is a stranger" 401 unauthenticated
is "... and no node" "$(arcus nodes -o json | jq -r '[.items[].name] | sort | join(" ")')" "$(printf '%s\n' "$GOOD" "$EVIL" | sort | tr '\n' ' ' | sed 's/ $//')"

# --- a hostile node: a real key, messages by hand
cat >"$BASE/ws.pl" <<'EOF2'
# ws.pl PORT KEY: a WebSocket to /v1/nodes/link. Lines of standard input go up: "text:...", "binary:...", "big:N" (a text of N bytes), "wait" (until
# something comes down). What comes down is printed, and in the end how it was closed, or that it was not in WS_PATIENCE seconds.
use strict; use IO::Socket::INET; use IO::Select;
$| = 1;
my ($port, $key, $path) = @ARGV;
$path //= '/v1/nodes/link';
my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die "dial\n";
print $s "GET $path HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $key\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
my $head = '';
while ($head !~ /\r\n\r\n/) { sysread($s, $head, 1, length $head) or last }
$head =~ m{^HTTP/1.1 (\d+)} or die "no answer\n";
if ($1 != 101) { print "refused $1\n"; exit }
my $in = '';
local $SIG{PIPE} = 'IGNORE';
sub up { my ($op, $t) = @_; my $n = length $t;
    my $h = pack('C', 0x80 | $op) . ($n < 126 ? pack('C', 0x80 | $n) : $n < 65536 ? pack('Cn', 0xfe, $n) : pack('CQ>', 0xff, $n)) . "\0\0\0\0";
    my $all = $h . $t; while (length $all) { my $w = syswrite($s, $all, 65536) // return; substr($all, 0, $w) = '' } }
sub down { my $wait = shift; # one message; false: nothing came
    my $end = time + $wait;
    while (1) {
        if (length $in >= 2) {
            my ($a, $b) = unpack 'CC', $in; my ($n, $at) = ($b & 0x7f, 2);
            if ($n == 126 && length $in >= 4) { ($n, $at) = (unpack('x2n', $in), 4) } elsif ($n == 127 && length $in >= 10) { ($n, $at) = (unpack('x2Q>', $in), 10) }
            if (($n < 126 || $at > 2) && length $in >= $at + $n) {
                my $t = substr $in, $at, $n; substr($in, 0, $at + $n) = ''; my $op = $a & 15;
                if ($op == 8) { printf "closed %d %s\n", length $t >= 2 ? unpack('n', $t) : 0, substr($t, 2); exit }
                if ($op == 9) { up(10, $t); next }
                print "$t\n" if $op == 1; return 1 if $op == 1; next
            }
        }
        IO::Select->new($s)->can_read($end - time > 0 ? $end - time : 0) or return 0;
        sysread($s, $in, 65536, length $in) or do { print "cut\n"; exit };
    }
}
while (my $l = <STDIN>) {
    chomp $l;
    if ($l =~ /^text:(.*)/) { up(1, $1) } elsif ($l =~ /^binary:(.*)/) { up(2, $1) } elsif ($l =~ /^big:(\d+)/) { up(1, '{"kind":"hello","next":1,"info":{"hostname":"' . ('x' x $1) . '"}}') }
    elsif ($l eq 'wait') { down(60) or print "silence\n" }
}
1 while down($ENV{WS_PATIENCE} // 2);
print "open\n";
EOF2
hello() { jq -nc --argjson m "${1:-{\}}" '{kind: "hello", next: 1, info: {hostname: "evil", version: "1", cpu_milli: 1, mem_mib: 16}} + $m'; }
report() { jq -nc --argjson items "$1" --argjson m "${2:-{\}}" '{kind: "report", generation: 1, beat: 1, items: $items} + $m'; }
link() { perl "$BASE/ws.pl" "$PORT" "${KEY_NOW:-$EVIL_KEY}" >"$BASE/said.ws" 2>&1; }

printf 'the weights\n' >"$BASE/blob"
DIGEST=sha256:$(sha256sum "$BASE/blob" | cut -d' ' -f1)
curl -sk -X PUT -H "Authorization: Bearer $KEY" --data-binary "@$BASE/blob" "$URL/v1/blobs/$DIGEST" -o /dev/null
arcus volumes create precious >/dev/null
printf hush | arcus secrets set TOKEN >/dev/null
VICTIM=$(submit "$(sh_job 'cat /run/secrets/TOKEN >/dev/null; while :; do echo tick; sleep 0.2; done' "$(jq -nc --arg n "$GOOD" '{node: $n, secrets: ["TOKEN"], volumes: ["precious:/data"]}')")")
wait_for "$VICTIM" running
until_ok 20 has_said "$VICTIM" tick
ATTEMPT=$(get "/v1/jobs/$VICTIM/attempts" | jq -r '.items[0].id')
WAITING=$(submit "$(sh_job 'true' '{"cpus":999}')")
rows() { sql "SELECT id, state, outcome, started_ms, ended_ms, node FROM attempt ORDER BY id"; sql "SELECT id, state, done, failed, version FROM job WHERE id <> 0 ORDER BY id"; sql "SELECT attempt, started_ms, ended_ms FROM usage ORDER BY attempt"; sql "SELECT id, name, node FROM volume ORDER BY id"; sql "SELECT volume, node FROM goner ORDER BY volume"; }
until_ok 10 eval '[ "$(job $WAITING .reason)" = NoSuitableNode ]'
BEFORE=$(rows)

now=$(date +%s%3N)
{ echo "text:$(hello "{\"running\":[\"$ATTEMPT\"]}")"; echo wait
  echo "text:$(report "[{\"n\":1,\"attempt\":\"$ATTEMPT\",\"news\":\"ended\",\"at_ms\":$now,\"outcome\":\"succeeded\"}]")"; echo wait
  echo "text:$(report "[{\"n\":2,\"attempt\":\"$ATTEMPT\",\"news\":\"started\",\"at_ms\":1},{\"n\":3,\"attempt\":\"$ATTEMPT\",\"news\":\"ended\",\"at_ms\":$now,\"started_ms\":1,\"outcome\":\"node_lost\"}]")"; echo wait
  echo "text:$(report '[]' "{\"swept\":[\"$(arcus volumes -o json | jq -r '.items[0].id')\",\"vol-0000000000000\",\"../../etc\"]}")"; echo wait; } | link
like "a node may speak" "$(head -n 1 "$BASE/said.ws")" '"full":true'
unlike "... and is told nothing of others: no order, no secret" "$(cat "$BASE/said.ws")" "hush|$VICTIM|weights"
is "what it says about another's task changes nothing" "$(rows)" "$BEFORE"
is "... which runs on" "$(job "$VICTIM" '.state + " " + .node')" "running $GOOD"
like "... but that it said so is known" "$(get '/v1/events?limit=1000' | jq -r '.items[].name' | sort -u | tr '\n' ' ')" 'report\.late'

AS=$EVIL_KEY call GET "/v1/blobs/$DIGEST"
like "a blob that none of its tasks names is not given" "$STATUS" '^(403|404)$'
unlike "... not a byte of it" "$BODY" weights
perl "$BASE/ws.pl" "$PORT" "$EVIL_KEY" /v1/streams/0123456789012345678901234567890123456789012 </dev/null >"$BASE/said.ws"
like "a stream that it was not asked to open is not opened" "$(cat "$BASE/said.ws")" '^refused (403|404|410)'
tried=''
while read -r method path body; do
    AS=$EVIL_KEY call "$method" "$path" "$body"
    [[ $STATUS =~ ^(401|403|404)$ ]] || tried+="$method $path: $STATUS; "
done <<EOF2
GET /v1/whoami
GET /v1/jobs
GET /v1/jobs/$VICTIM
GET /v1/jobs/$VICTIM/logs
POST /v1/jobs {"command":["true"]}
POST /v1/jobs/$VICTIM/cancel {}
GET /v1/secrets
PUT /v1/secrets/TOKEN {"value":"mine"}
GET /v1/nodes
GET /v1/nodes/$GOOD
PATCH /v1/nodes/$GOOD {"state":"cordoned"}
POST /v1/nodes/$GOOD/rotate {}
DELETE /v1/nodes/$GOOD
POST /v1/nodes/tokens {}
POST /v1/keys {"name":"x"}
GET /v1/events
GET /v1/users
GET /v1/volumes
DELETE /v1/volumes/precious
EOF2
is "none of the verbs of people is a node's" "$tried" ""

odd() { # odd NAME LINES: refused with a reason, or cut; and nothing changes
    local patience=60
    [ "${3:-}" != ^open ] || patience=2
    printf '%s\n' "$2" | WS_PATIENCE=$patience link
    like "$1" "$(tail -n 1 "$BASE/said.ws" | head -c 300)" "${3:-^(closed 4400|closed 4413|closed 10|cut)}"
}
odd "a report before a hello is refused" "text:$(report '[]')"
odd "a message that is no JSON" 'text:{"kind":'
odd "a list" 'text:[1,2,3]'
odd "a kind that is none" 'text:{"kind":"order"}'
odd "bytes" 'binary:abc'
odd "a message too large" 'big:9000000'
odd "a name too long" 'big:500000'
odd "many nested lists" "text:$(printf '[%.0s' $(seq 1000))"
odd "a member that nobody knows is passed over: a newer agent may say it" "text:$(hello '{"admin":true}')" ^open
odd "numbers out of range" "text:$(hello '{"next":-1}')"
odd "a GPU told twice" "text:$(hello '{"info":{"hostname":"e","cpu_milli":1,"mem_mib":16,"gpus":[{"index":0,"uuid":"a","model":"m","mem_mib":1,"healthy":true},{"index":0,"uuid":"a","model":"m","mem_mib":1,"healthy":true}]}}')"
odd "more items than a report may have" "text:$(hello)
wait
text:$(jq -nc --arg a "$ATTEMPT" '{kind: "report", generation: 1, items: [range(4;3000) | {n: ., attempt: $a, news: "started", at_ms: 1}]}')"
odd "items with a gap are not taken" "text:$(hello '{"next":4}')
wait
text:$(report "[{\"n\":900,\"attempt\":\"$ATTEMPT\",\"news\":\"ended\",\"at_ms\":1,\"outcome\":\"succeeded\"}]")
wait" ^open
is "after all that everything is as it was" "$(rows)" "$BEFORE"
is "... and served" "$(job "$VICTIM") $(get /v1/whoami | jq -r .name)" "running admin"
call DELETE "/v1/nodes/$EVIL"
KEY_NOW=$EVIL_KEY
link </dev/null
like "a node that was removed comes no more" "$(cat "$BASE/said.ws")" '^refused 401'
join "$TOKEN" "$EVIL" "$EVIL_KEY"
refused "... nor does its token bring it back" 401 unauthenticated

# --- keys are replaced while the node works
key() { jq -r .key "$BASE/$GOOD.data/node.json"; }
OLD=$(key)
like "the node has made its own key" "$OLD" '^nk_[A-Za-z0-9]{43}$'
curl -sNk -H "Authorization: Bearer $KEY" "$URL/v1/jobs/$VICTIM/logs?follow=true" >"$BASE/followed" 2>/dev/null &
pids+=($!)
FOLLOWER=$!
until_ok 10 grep -q tick "$BASE/followed"
has_new_key() { [ "$(key)" != "$1" ] && [ "$(jq -r '.next_key // ""' "$BASE/$GOOD.data/node.json")" = "" ]; }
arcus nodes rotate "$GOOD" >/dev/null
is "an operator has a node replace its key" $? 0
ok "... and it does" until_ok 20 has_new_key "$OLD"
until_ok 20 node_ready "$GOOD"
KEY_NOW=$OLD link </dev/null
like "the old key is good no more" "$(cat "$BASE/said.ws")" '^refused 401'
AS=$OLD call POST /v1/nodes/key "{\"key\":\"$(nk)\"}"
refused "... not for a new one either" 401 unauthenticated
n=$(wc -l <"$BASE/followed")
ok "who followed a log goes on to follow it" until_ok 20 eval '[ "$(wc -l <"$BASE/followed")" -gt $((n + 5)) ] && kill -0 $FOLLOWER'
for i in 1 2 3 4; do # whenever it dies in between, it comes back
    OLD=$(key)
    arcus nodes rotate "$GOOD" >/dev/null
    sleep "0.$((i * 13 % 10))$i"
    stop "$AGENT" KILL
    agent_start "$GOOD" --sim-gpus 1 --beat-ms 500
    until_ok 30 has_new_key "$OLD" || note "no new key: $(tail -n 3 "$BASE/$GOOD.log")"
done
ok "an agent that dies while its key is replaced is not locked out" until_ok 20 node_ready "$GOOD"
is "... and its task has not noticed" "$(job "$VICTIM" .state) $(get "/v1/jobs/$VICTIM/attempts" | jq '.items | length')" "running 1"
until_ok 20 eval '[ "$(sql "SELECT count(*) FROM apikey WHERE owner_kind = 3 AND state = 0")" = 1 ]'
is "a node has one key" "$(sql "SELECT count(*) FROM apikey WHERE owner_kind = 3 AND state = 0")" 1
finish
