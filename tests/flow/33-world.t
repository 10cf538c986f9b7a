#!/usr/bin/env bash
# 33-world.t - the world fails, not the program: a disk that is full, read-only, slow or unreadable, a clock that jumps, names that are not
# found, no descriptors, no memory, a node that is cut off, a damaged page. Each time: what was acknowledged is there, what fails is told
# in words, and all is well again by itself when the world is.
# Its mounts are its own: they go with it, whatever ends it.
[ -n "${WORLD_OF_ITS_OWN:-}" ] || exec unshare -m --propagation private env WORLD_OF_ITS_OWN=1 "$0" "$@"
. "$(dirname "$0")/lib.sh"
cc -shared -fPIC -O1 -o "$BASE/shim.so" tests/shim.c || give_up "no shim"
export SHIM=$BASE/shim
set_world() { printf '%s\n' "$*" >"$SHIM.new" && mv "$SHIM.new" "$SHIM"; }
set_world calm
PORT=0
serve() { server_start server --listen "127.0.0.1:$PORT" --default-image host "$@"; PORT=${URL##*:}; }
shimmed() { # shimmed COMMAND...: in the worse world
    local asan=$ASAN_OPTIONS
    export LD_PRELOAD=$BASE/shim.so ASAN_OPTIONS=$asan:verify_asan_link_order=0
    "$@"
    local code=$?
    unset LD_PRELOAD
    export ASAN_OPTIONS=$asan
    return $code
}
token() { call POST /v1/nodes/tokens '{}'; field .token; }
acked=$BASE/acked
: >"$acked"
ask() { # ask [JSON]: a job that waits for ever; noted when it was acknowledged
    call POST /v1/jobs "${1:-{\"command\":[\"true\"],\"gpus\":64\}}"
    [ "$STATUS" = 201 ] && field .id >>"$acked"
}
all_there() { # every acknowledged job is in the store
    sort -u "$acked" >"$BASE/want"
    curl -sk -H "Authorization: Bearer $KEY" "$URL/v1/jobs?limit=1000&all=true" | jq -r '.items[].id' | sort >"$BASE/have"
    comm -23 "$BASE/want" "$BASE/have" | grep . && return 1
    return 0
}
asks_again() { ask; [ "$STATUS" = 201 ]; }

# --- a full disk
mkdir "$DATA"
mount -t tmpfs -o size=12m,mode=711 small "$DATA"
serve
for i in 1 2 3; do ask; done
cat /dev/zero >"$DATA/filler" 2>/dev/null
big=$(jq -nc '{command: ["true"], gpus: 64, env: {X: ("x" * 30000)}}')
for i in $(seq 60); do ask "$big"; [ "$STATUS" = 201 ] || break; done
refused "full disk: a write is refused, and told why" 503 unavailable 'disk is full'
is "... reads go on" "$(get '/v1/whoami' | jq -r .name)" admin
ok "... and what was acknowledged is there" all_there
stop "$UP" KILL
setpriv --pdeathsig TERM "$ARCUS" server --data "$DATA" --listen "127.0.0.1:$PORT" >"$BASE/full.log" 2>&1 &
FULL=$!
gone_or_ready() { ! kill -0 $FULL || answers; }
until_ok 60 gone_or_ready
if kill -0 $FULL 2>/dev/null; then
    pass "full disk: a start serves what is there"
    stop $FULL KILL
else
    like "full disk: a start says what is wrong" "$(cat "$BASE/full.log")" 'disk is full|No space left'
fi
rm "$DATA/filler"
serve
ok "with room again it starts, and takes writes" until_ok 60 asks_again
ok "... nothing acknowledged was lost" all_there
cat /dev/zero >"$DATA/filler" 2>/dev/null
full() { ask "$big"; [ "$STATUS" = 503 ]; }
until_ok 60 full
rm "$DATA/filler"
ok "a server that ran on takes writes by itself once there is room" until_ok 60 asks_again
stop "$UP"
umount "$DATA"

# --- a disk that turns read-only, as ext4 does when the device fails
truncate -s 64M "$BASE/disk"
mkfs.ext4 -qF "$BASE/disk" && mount -o loop "$BASE/disk" "$DATA" || give_up "no disk of its own"
: >"$acked"
serve
for i in 1 2 3; do ask; done
mount -o remount,abort "$DATA"
ask
refused "read-only disk: a write is refused, and told why" 503 unavailable 'cannot be written|disk of the store'
is "... reads go on" "$(get '/v1/whoami' | jq -r .name)" admin
ok "... and what was acknowledged is there" all_there
stop "$UP" KILL
until_ok 60 umount "$DATA" && mount -o loop,ro,noload "$BASE/disk" "$DATA" || give_up "no read-only disk"
timeout -s KILL 20 "$ARCUS" server --data "$DATA" --listen 127.0.0.1:0 >"$BASE/ro.log" 2>&1
ok "a start on it is refused" test $? != 0
like "... in words" "$(cat "$BASE/ro.log")" 'Read-only|cannot be written'
umount "$DATA"
e2fsck -fy "$BASE/disk" >/dev/null 2>&1
mount -o loop "$BASE/disk" "$DATA"
serve
ok "on a mended disk nothing acknowledged is lost" all_there
ok "... and writes are taken" asks_again
stop "$UP"
umount "$DATA"

# --- a slow disk: a commit takes a second
: >"$acked"
shimmed serve
ask
set_world sync_ms=1000
askers=()
began=$(date +%s%3N)
for i in $(seq 16); do
    curl -s -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"command":["true"],"gpus":64}' "$URL/v1/jobs" | jq -r '.id // empty' >>"$acked" &
    askers+=($!)
done
wait "${askers[@]}"
took=$(($(date +%s%3N) - began))
is "slow disk: all writes are acknowledged" "$(sort -u "$acked" | wc -l)" 17
ok "... many with one commit ($took ms for 16)" test "$took" -lt 12000
overtakes() { # a read that began after a write has ended before it
    curl -s -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"command":["true"],"gpus":64}' "$URL/v1/jobs" >/dev/null &
    local write=$! read
    sleep 0.1
    get /v1/whoami
    kill -0 $write
    read=$?
    wait $write
    return $read
}
ok "... while reads do not wait" until_ok 60 overtakes
set_world calm

# --- the clock jumps an hour ahead, and two back, with a task that runs and one that ends
agent_start "$NODE" --sim-gpus 4 --beat-ms 500 --token "$(token)"
RUN=$BASE/$NODE.run
until_ok 60 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/$NODE.log")"
outputs=$BASE/$NODE.data/outputs
waiter() { submit "$(sh_job 'while [ ! -e /outputs/go ]; do date +%s%3N >>/outputs/alive; sleep 0.1; done; exit $(cat /outputs/go)' "${1:-{\}}")"; }
attempt_of() { get "/v1/jobs/$1/attempts" | jq -r '.items | sort_by(.id) | .[-1].id'; }
attempts_of() { get "/v1/jobs/$1/attempts" | jq '.items | length'; }
A=$(waiter) B=$(waiter)
wait_for "$A" running
wait_for "$B" running
for jump in 3600 -3600; do
    set_world "clock_s=$jump"
    ok "clock $jump s: writes go on" until_ok 60 asks_again
    run_sh 'echo ran'
    is "... jobs run" "$HOW $OUT" "done succeeded 0 ran"
    is "... the node is not lost, and what runs runs on" "$(get "/v1/nodes/$NODE" | jq -r .state) $(job "$A") $(attempts_of "$A")" "ready running 1"
done
echo 0 >"$outputs/$(attempt_of "$A")/go"
is "what ends then ends well" "$(how "$A")" "done succeeded 0"
set_world calm
ok "with the right time again writes go on" until_ok 60 asks_again
echo 0 >"$outputs/$(attempt_of "$B")/go"
is "... and what ran through it all ends well" "$(how "$B") $(attempts_of "$B")" "done succeeded 0 1"
is "no interval is negative" "$(sql 'SELECT count(*) FROM usage WHERE ended_ms < started_ms')" 0
stop "$UP"
serve
until_ok 60 node_ready

# --- descriptors run out
limit_of() { awk '/open files/ {print $4}' "/proc/$1/limits"; }
were=$(limit_of "$UP")
prlimit --pid "$UP" --nofile="$(ls "/proc/$UP/fd" | wc -l):$were"
cpu() { awk '{print $14 + $15}' "/proc/$1/stat"; }
used=$(cpu "$UP")
for i in 1 2 3; do curl -s --max-time 1 "$URL/readyz" >/dev/null && break; done
ok "no descriptors: the server does not spin" test $(($(cpu "$UP") - used)) -lt 150
prlimit --pid "$UP" --nofile="$were:$were"
ok "... and serves again when there are some" until_ok 60 asks_again
ok "... its node is there" until_ok 60 node_ready
were=$(limit_of "$AGENT")
prlimit --pid "$AGENT" --nofile="$(ls "/proc/$AGENT/fd" | wc -l):$were"
C=$(submit "$(sh_job 'echo ran' '{"retry":{"max":20}}')")
sleep 1
prlimit --pid "$AGENT" --nofile="$were:$were"
is "an agent without descriptors starts it later" "$(how "$C" 60)" "done succeeded 0"
ok "... and is not lost" until_ok 60 node_ready

# --- memory runs out: the kernel kills the server in the middle of a load
group=
for g in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -z "$group" ] && { [ -e "$g/memory.usage_in_bytes" ] || grep -qs memory "$g/cgroup.subtree_control"; } && mkdir "$g/world-$$" 2>/dev/null && group=$g/world-$$
done
if [ -n "$group" ]; then
    stop "$UP"
    serve
    echo "$UP" >"$group/cgroup.procs"
    for i in 1 2 3; do ask; done
    now=$(awk '/VmRSS/ {print $2 * 1024}' "/proc/$UP/status")
    echo $((20 << 20)) >"$group/memory.limit_in_bytes" 2>/dev/null || echo $((20 << 20)) >"$group/memory.max" 2>/dev/null
    for i in $(seq 40); do
        kill -0 "$UP" 2>/dev/null || break
        for k in 1 2 3 4 5 6; do curl -s --max-time 5 -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d "$(jq -nc '{command: ["true"], gpus: 64, env: {X: ("x" * 100000)}}')" "$URL/v1/jobs" | jq -r '.id // empty' 2>/dev/null >>"$acked" & done
        wait $(jobs -p | grep -vxE "$UP|$AGENT")
    done
    note "with ${now} bytes resident before the limit, the server is $(kill -0 "$UP" 2>/dev/null && echo alive || echo killed)"
    stop "$UP" KILL
    rmdir "$group" 2>/dev/null || until_ok 60 rmdir "$group"
    serve
    ok "out of memory: a restart has everything acknowledged" all_there
    ok "... and goes on" until_ok 60 asks_again
    until_ok 60 node_ready
else
    skip "out of memory: a restart has everything acknowledged" "no memory cgroup can be made here"
fi

# --- names are not found
echo "127.0.0.1 localhost" >"$BASE/hosts"
echo "127.0.0.1 other" >"$BASE/no-hosts"
printf 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n' >"$BASE/resolv"
cp "$BASE/hosts" "$BASE/hosts-now"
mount --bind "$BASE/hosts-now" /etc/hosts && mount --bind "$BASE/resolv" /etc/resolv.conf
D=$(waiter)
wait_for "$D" running
DA=$(attempt_of "$D")
stop "$AGENT"
agent_by_name() { URL=http://localhost:$PORT agent_start "$NODE" --sim-gpus 4 --beat-ms 500; }
agent_by_name
linked() { [ "$(get "/v1/nodes/$NODE" | jq -r .state)" = ready ] && [ -n "$(ss -tnp 2>/dev/null | grep "pid=$AGENT,")" ]; }
ok "an agent finds its server by name" until_ok 60 linked
cat "$BASE/no-hosts" >"$BASE/hosts-now"
stop "$UP" KILL
echo 0 >"$outputs/$DA/go"
serve
said() { tail -n 20 "$BASE/$NODE.log" | grep -E "localhost|find|resolve|name"; }
ok "no such name: the agent says which it cannot find" until_ok 60 said
is "... and lives" "$(kill -0 "$AGENT" && echo yes)" yes
cat "$BASE/hosts" >"$BASE/hosts-now"
ok "with the name back it is back" until_ok 60 linked
is "... and tells what ended meanwhile" "$(how "$D" 60)" "done succeeded 0"
umount /etc/hosts /etc/resolv.conf
stop "$AGENT"
stop "$UP"

# --- a node is cut off: what runs there goes on and ends, or ends by itself before another node gets it
cat >"$BASE/proxy.pl" <<'EOF2'
use strict; use IO::Socket::INET; use IO::Select;
my ($to) = @ARGV;
my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1:0", Listen => 64, ReuseAddr => 1) or die;
$| = 1; print $l->sockport, "\n";
my $s = IO::Select->new($l); my %peer;
while (1) {
    for my $c ($s->can_read) {
        if ($c == $l) {
            my $in = $l->accept or next;
            my $out = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$to") or do { close $in; next };
            $s->add($in, $out); $peer{$in} = $out; $peer{$out} = $in;
        } else {
            next unless $peer{$c};      # its other end closed a moment ago
            my $n = sysread $c, my $bytes, 65536;
            my $o = $peer{$c};
            if (!$n) { $s->remove($c, $o); delete @peer{$c, $o}; close $c; close $o; next }
            while (length $bytes) { my $m = syswrite $o, $bytes; last unless defined $m; substr($bytes, 0, $m) = '' }
        }
    }
}
EOF2
serve --lease 10
perl "$BASE/proxy.pl" "$PORT" >"$BASE/proxy.port" &
PROXY=$!
pids+=("$PROXY")
until_ok 60 test -s "$BASE/proxy.port"
URL=http://127.0.0.1:$(cat "$BASE/proxy.port") agent_start "$NODE" --sim-gpus 4 --beat-ms 500
until_ok 60 node_ready
E=$(waiter '{"name":"ends-meanwhile"}') F=$(waiter '{"name":"outlives"}')
wait_for "$E" running
wait_for "$F" running
EA=$(attempt_of "$E") FA=$(attempt_of "$F")
kill -STOP $PROXY
echo 7 >"$outputs/$EA/go"
over() { ! grep -qs . /sys/fs/cgroup/*/arcus/"$EA"/cgroup.procs /sys/fs/cgroup/arcus/"$EA"/cgroup.procs; }
ok "cut off: a task ends" until_ok 8 over
is "... and nobody knows" "$(job "$E")" running
kill -CONT $PROXY
is "with the line back its end is told, once" "$(how "$E") $(get "/v1/jobs/$E/attempts" | jq -c '[.items[].exit_code]')" "failed exited 7 [7]"
agent_start "$NODE-b" --sim-gpus 4 --beat-ms 500 --token "$(token)"
ok "there is another node" until_ok 60 node_ready "$NODE-b"
kill -STOP $PROXY
again() { [ "$(attempts_of "$F")" = 2 ] && in_state "$F" running; }
ok "cut off for too long: the task is given to another node" until_ok 90 again
second=$BASE/$NODE-b.data/outputs/$(attempt_of "$F")
until_ok 60 test -s "$second/alive"
last=$(tail -n 1 "$outputs/$FA/alive") first=$(head -n 1 "$second/alive")
ok "... after it had ended by itself on the first ($((first - last)) ms before)" test "$last" -lt "$first"
kill -CONT $PROXY
ok "with the line back the node is back" until_ok 60 node_ready
echo 0 >"$second/go"
is "... and the task ends on its second node, not a third time" "$(how "$F") $(attempts_of "$F")" "done succeeded 0 2"
stop "$UP"

# --- a store that cannot be read, for a moment and for good
set_world eio=1000000
shimmed timeout -s KILL 20 "$ARCUS" server --data "$DATA" --listen 127.0.0.1:0 >"$BASE/eio.log" 2>&1
is "a disk that cannot be read: the start is refused, and may be tried again" "$?" 7
like "... in words" "$(cat "$BASE/eio.log")" 'disk of the store failed'
for n in 1 2 3 4 5 6 8 10 12 15 20 25 30; do
    set_world "eio=$n"
    shimmed timeout -s KILL 3 "$ARCUS" server --data "$DATA" --listen 127.0.0.1:0 >"$BASE/eio.log" 2>&1
    grep -q damaged "$BASE/eio.log" && fail "the first $n reads fail: that is no damage" "$(cat "$BASE/eio.log")" "the disk failed"
    grep -q 'serves http' "$BASE/eio.log" && break
done
set_world calm
serve
ok "... and nothing is lost by it" all_there
stop "$UP"
cp "$DATA/arcus.db" "$BASE/good.db"
pages=$(sqlite3 "$DATA/arcus.db" 'PRAGMA page_count')
root=$(sqlite3 "$DATA/arcus.db" "SELECT rootpage FROM sqlite_master WHERE name = 'event'")
printf '\377\377\377\377\377\377\377\377\377\377\377\377' | dd of="$DATA/arcus.db" bs=1 seek=$(((root - 1) * 4096)) conv=notrunc 2>/dev/null
sum=$(sha256sum <"$DATA/arcus.db")
timeout -s KILL 20 "$ARCUS" server --data "$DATA" --listen 127.0.0.1:0 >"$BASE/damaged.log" 2>&1
is "a damaged page of $pages: the start is refused" "$?" 1
like "... with what to do" "$(cat "$BASE/damaged.log")" 'damaged: keep a copy of it, then restore it from a backup'
is "... and nothing was made anew" "$(sha256sum <"$DATA/arcus.db")" "$sum"
cp "$BASE/good.db" "$DATA/arcus.db"
head -c 2048 /dev/urandom >"$DATA/arcus.db"
timeout -s KILL 20 "$ARCUS" server --data "$DATA" --listen 127.0.0.1:0 >"$BASE/damaged.log" 2>&1
is "a file that is no store at all is refused too" "$? $(grep -c damaged "$BASE/damaged.log") $(stat -c %s "$DATA/arcus.db")" "1 1 2048"
cp "$BASE/good.db" "$DATA/arcus.db"
# one that is too large to be looked at before it is served is looked at beside that
sqlite3 "$DATA/arcus.db" "CREATE TABLE filler (x); INSERT INTO filler WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 135) SELECT zeroblob(1048576) FROM n; PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
looks() { pgrep -f "store-check $DATA/arcus.db"; }
serve
ok "a large store is looked at while it is served" until_ok 60 eval '! looks'
is "... and what is whole is served on" "$(get /v1/whoami | jq -r .name)" admin
stop "$UP"
page=$(($(sqlite3 "$DATA/arcus.db" 'PRAGMA page_count') / 2))
sqlite3 "$DATA/arcus.db" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
printf '\377\377\377\377\377\377\377\377\377\377\377\377' | dd of="$DATA/arcus.db" bs=1 seek=$(((page - 1) * 4096)) conv=notrunc 2>/dev/null
timeout -s KILL 90 "$ARCUS" server --data "$DATA" --listen 127.0.0.1:0 >"$BASE/damaged.log" 2>&1
is "a damaged page of a large store: the server leaves by itself" "$?" 1
like "... with what to do" "$(cat "$BASE/damaged.log")" 'damaged: keep a copy of it, then restore it from a backup'
cp "$BASE/good.db" "$DATA/arcus.db"
rm -f "$DATA"/arcus.db-wal "$DATA"/arcus.db-shm
serve
ok "with the good one back all is there" all_there
finish
