#!/usr/bin/env bash
# 20-hostile.t - somebody who wants what is not theirs: a developer of one project against another's, root inside a container, a node that
# lies, a stranger on the network. Each check is an attack that once worked, or would if its rule were gone.
# Its mounts are its own: what it mounted for a while would live on in the supervisors that other flows began meanwhile.
[ -n "${HOSTILE_ON_ITS_OWN:-}" ] || exec unshare -m --propagation private env HOSTILE_ON_ITS_OWN=1 "$0" "$@"
. "$(dirname "$0")/lib.sh"
cloud_up

# --- two tenants who distrust each other
tenant() { # tenant NAME PROJECT: a developer's key
    call POST /v1/projects "{\"name\":\"$2\"}"
    call POST /v1/users "{\"name\":\"$1\",\"password\":\"password of $1\"}"
    call PUT "/v1/members/$1?project=$2" '{"roles":"developer"}'
    call POST /v1/login "{\"user\":\"$1\",\"password\":\"password of $1\"}"
    field .key
}
ALICE=$(tenant alice red) MALLORY=$(tenant mallory blue)
is "alice is in red alone" "$(AS=$ALICE get /v1/projects | jq -r '.items[].name')" red
is "mallory is in blue alone" "$(AS=$MALLORY get /v1/projects | jq -r '.items[].name')" blue
run_as() { # run_as KEY JSON: to its end; OUT, HOW
    AS=$1
    JOB=$(submit "$2") HOW=$(how "$JOB" 60) OUT=$(logs "$JOB")
    unset AS
}
sh_in() { jq -nc --arg i "$1" --arg s "$2" '{image: $i, command: ["sh", "-c", $s], cpus: 0.2, memory: "128MB"}'; }    # sh_in IMAGE SCRIPT

# --- images. A layout is a folder that umoci makes; $1 is what /who says in it
make_layout() { # make_layout FOLDER WORD
    umoci init --layout "$1" && umoci new --image "$1:image" && umoci unpack --image "$1:image" "$1.bundle" >/dev/null 2>&1 || return 1
    mkdir -p "$1.bundle/rootfs/bin" && cp /bin/busybox "$1.bundle/rootfs/bin/"
    for word in sh cat ls id stat head dd touch echo sleep; do ln -s busybox "$1.bundle/rootfs/bin/$word"; done
    echo "$2" >"$1.bundle/rootfs/who"
    umoci repack --image "$1:image" "$1.bundle" >/dev/null 2>&1 && rm -rf "$1.bundle"
}
import() { # import KEY LAYOUT NAME: its digest
    tar -C "$2" -cf "$2.tar" .
    local digest
    digest=sha256:$(sha256sum "$2.tar" | cut -d ' ' -f 1)
    AS=$1 call PUT "/v1/blobs/$digest" '' --data-binary "@$2.tar" -H 'Content-Type: application/octet-stream'
    AS=$1 call POST /v1/images "{\"name\":\"$3\",\"digest\":\"$digest\"}"
    echo "$digest"
}
ok "images are made" make_layout "$BASE/good" "what everybody means"
ok "... and made again" make_layout "$BASE/evil" "what mallory wants others to run"

# A registry that says of a tag first one thing, then another: what it said first must not become the name of what came second.
cat >"$BASE/registry.pl" <<'EOF2'
use strict; use IO::Socket::INET; use JSON::PP;
my ($base, $port) = @ARGV;
sub slurp { local (@ARGV, $/) = ($_[0]); binmode ARGV; my $text = <>; $text }
my %digest = map { $_ => decode_json(slurp("$base/$_/index.json"))->{manifests}[0]{digest} } qw(good evil);
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port", Listen => 16, ReuseAddr => 1) or die;
my $asked = 0;
while (my $c = $listener->accept) {
    my ($method, $path) = split ' ', <$c> // '';
    while (defined(my $line = <$c>)) { last if $line =~ /^\r?\n$/ }
    my ($type, $body) = ('application/json', $path eq '/v2/' ? '{}' : undef);
    my ($what, $ref) = $path =~ m{/(manifests|blobs)/(.*)};
    if (defined $what) {
        my $d = $ref =~ /^sha256:/ ? $ref : $path =~ m{/evil/} && $asked++ ? $digest{evil} : $digest{good};
        (my $hex = $d) =~ s/.*://;
        my ($file) = grep { -e } map { "$base/$_/blobs/sha256/$hex" } qw(good evil);
        $body = slurp($file) if $file && $hex =~ /^[0-9a-f]+$/;
        $type = 'application/vnd.oci.image.manifest.v1+json' if $what eq 'manifests';
    }
    my $status = defined $body ? '200 OK' : '404 Not Found';
    $body //= '{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}';
    print $c "HTTP/1.1 $status\r\nContent-Type: $type\r\nConnection: close\r\nContent-Length: ", length $body, "\r\n\r\n", $method eq 'HEAD' ? '' : $body;
    close $c;
}
EOF2
port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr => "127.0.0.1:0", Listen => 1)->sockport')
perl "$BASE/registry.pl" "$BASE" "$port" >"$BASE/registry.log" 2>&1 &
pids+=($!)
ok "a registry that lies" until_ok 5 curl -fs "http://127.0.0.1:$port/v2/"
run_as "$MALLORY" "$(sh_in "127.0.0.1:$port/evil/x:latest" 'cat /who')"
unlike "what a registry swaps behind a digest is not run under it" "$OUT" mallory
run_as "$ALICE" "$(sh_in "127.0.0.1:$port/good/x:latest" 'cat /who')"
is "another tenant gets what that digest means" "$HOW|$OUT" "done succeeded 0|what everybody means"

make_layout "$BASE/private" "the weights of alice"
digest=$(import "$ALICE" "$BASE/private" model)
run_as "$ALICE" "$(sh_in model 'cat /who')"
is "alice runs what she imported" "$OUT" "the weights of alice"
for image in "$digest" "registry.invalid/x@$digest" "127.0.0.1:$port/good/x@$digest" "model"; do
    run_as "$MALLORY" "$(sh_in "$image" 'cat /who')" 2>/dev/null
    unlike "mallory does not get it as ${image%%sha256*}" "$HOW|$OUT" weights
done

# --- root inside a container: what a process may do is the same whichever way it came in
box=$(AS=$MALLORY submit "$(sh_in host 'sleep 600')")
AS=$MALLORY wait_for "$box" running
rights='grep -E "^(Cap|NoNewPrivs|Seccomp|Groups)" /proc/self/status; cat /proc/self/uid_map; ls -l /proc/self/fd | wc -l; pwd; ulimit -n'
run_as "$MALLORY" "$(sh_in host "$rights" | jq -c '.command[2] |= "exec </dev/null; " + .')"
by_exec() { ARCUS_SERVER=$URL ARCUS_KEY=$MALLORY arcus exec "$@" "$box" -- sh -c "$rights" </dev/null; }
is "the first process of a task may gain no rights, under a filter" "$(grep -E 'NoNewPrivs|Seccomp:' <<<"$OUT" | tr -d '\t' | tr '\n' ' ')" "NoNewPrivs:1 Seccomp:2 "
is "... and neither may one that exec adds" "$(by_exec | grep -v '^ ')" "$(grep -v '^ ' <<<"$OUT")"
like "it has the rights of the image's programs and no others" "$OUT" $'CapEff:\t00000000200405fb'
for call in 'unshare -U true' 'unshare -m true' 'unshare -n true' 'mount -t tmpfs x /mnt' 'chroot /proc/1/root/../../ test -e /etc/shadow.never' 'mknod /tmp/sda b 8 0' 'dmesg' 'hostname other' \
    'sysctl -w kernel.hostname=x' 'echo 1 >/proc/sys/net/ipv4/ip_forward' 'echo b >/proc/sysrq-trigger' 'cat /proc/kcore' 'ls /sys/firmware/*' 'ls /sys/fs/cgroup/*' 'cat /etc/shadow' \
    'test -r /dev/mem -o -r /dev/kmsg -o -e /dev/vda -o -e /dev/sda -o -e /dev/loop-control'; do
    run_as "$MALLORY" "$(sh_in host "exec 3>&1 >/dev/null 2>&1; ($call) && echo it worked >&3; exit 0")"
    is "refused: $call" "$HOW|$OUT" "done succeeded 0|"
done

# --- a node is everybody's
# Orders of many megabytes must not cut the node off from the server: its whole set comes with every hello.
value=$(head -c 60000 /dev/zero | tr '\0' s)
names=()
for i in $(seq 64); do
    AS=$ALICE call PUT "/v1/secrets/S$i" "{\"value\":\"$value\"}"
    names+=("S$i")
done
many=$(AS=$ALICE submit "$(sh_in host 'cat /run/secrets/* | wc -c; sleep 600' | jq -c --arg n "${names[*]}" '.count = 6 | .cpus = 0.1 | .secrets = ($n | split(" "))')")
all_six() { [ "$(AS=$ALICE job "$many" .running)" = 6 ]; }
ok "tasks with secrets of many megabytes run" until_ok 60 all_six
until_ok 20 eval '[ -n "$(AS=$ALICE logs "$many" task=4)" ]'
is "... and have them all" "$(AS=$ALICE logs "$many" task=4)" 3840000
# placed while the agent is away: all of it comes with the answer to its hello
agent=$(agent_pid)
kill -STOP "$agent"
late=$(AS=$ALICE submit "$(sh_in host 'cat /run/secrets/* | wc -c' | jq -c --arg n "${names[*]}" '.count = 6 | .cpus = 0.1 | .secrets = ($n | split(" "))')")
all_placed() { [ "$(sql "SELECT count(*) FROM attempt WHERE state = 1")" = 6 ]; }
until_ok 20 all_placed || note "not all were placed: $(sql "SELECT state, count(*) FROM attempt GROUP BY state")"
stop "$agent" KILL
is "a node that comes back gets all of its orders" "$(AS=$ALICE how "$late" 60)|$(AS=$ALICE logs "$late" task=5)" "done succeeded 0|3840000"
AS=$ALICE call POST "/v1/jobs/$many/cancel" '{"grace":"0s"}'
is "... and stops what it is asked to stop" "$(AS=$ALICE how "$many" 40; AS=$ALICE job "$many" .cancelled)" "cancelled cancelled 0
6"

# Instances of inotify of all containers are root's, on the whole machine: who takes them all must not keep others from starting or
# stopping. That would slow the flows beside this one down, so it is for the long runs.
if [ -n "${ARCUS_SOAK:-}" ]; then
hog=$(AS=$MALLORY submit "$(jq -nc '{image: "host", command: ["perl", "-e", "$| = 1; $n = 0; for (1..20000) { last if syscall(294, 0) < 0; $n++ } print \"took $n\\n\"; sleep 600"], cpus: 0.2, memory: "256MB"}')")
AS=$MALLORY until_ok 20 has_said "$hog" took
run_as "$ALICE" "$(sh_in host 'echo alice runs')"
is "another tenant's task starts all the same" "$HOW|$OUT" "done succeeded 0|alice runs"
other=$(AS=$ALICE submit "$(sh_in host 'trap "echo told; exit 0" TERM; while :; do sleep 0.1; done')")
AS=$ALICE wait_for "$other" running
AS=$ALICE call POST "/v1/jobs/$other/cancel" '{"grace":"20s"}'
is "... and is told to stop" "$(AS=$ALICE how "$other" 15)" "cancelled cancelled 0"
AS=$MALLORY call POST "/v1/jobs/$hog/cancel" '{"grace":"0s"}'
AS=$MALLORY wait_end "$hog"
fi

# --- disks are everybody's. What a task does there it does once and then waits, so that it is caught however slow the machine is.
fills() { # fills SCRIPT: as mallory, within 64 MB; until it is ended
    JOB=$(AS=$MALLORY submit "$(sh_in host "$1; sleep 900" | jq -c '.disk_size = "64MB"')")
    HOW=$(AS=$MALLORY how "$JOB" 120)
}
run_as "$MALLORY" "$(sh_in host 'head -c 30000000 /dev/zero >/outputs/a; sleep 3; echo kept' | jq -c '.disk_size = "64MB"')"
is "what fits is kept" "$HOW|$OUT" "done succeeded 0|kept"
fills 'mkdir /outputs/b; for i in 1 2 3; do head -c 30000000 /dev/zero >/outputs/b/$i; done'
like "a task that fills /outputs is ended, and told why" "$HOW|$(AS=$MALLORY job "$JOB" .detail)" '^failed signaled .*more than 64 MiB in /outputs'
fills 'cd /outputs; i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit 1; i=$((i + 1)); done'
like "nor can it be hidden deep down" "$(AS=$MALLORY job "$JOB" .detail)" 'in /outputs'
fills 'cd /outputs; i=0; while [ $i -lt 17000 ]; do : >$i; i=$((i + 1)); done'
like "empty files count too" "$(AS=$MALLORY job "$JOB" .detail)" 'in /outputs'

# A node with a small disk, of which a task was promised more than there is.
small=$NODE-small
mkdir "$BASE/$small.data"
truncate -s 1200M "$BASE/disk" && mkfs.ext4 -qF "$BASE/disk" && mount -o loop "$BASE/disk" "$BASE/$small.data" || note "no disk of its own"
call POST /v1/nodes/tokens '{}'
agent_start "$small" --sim-gpus 0 --token "$(field .token)"
ok "a node with a small disk joins" until_ok 20 node_ready "$small"
on_small() { jq -c --arg n "$small" --arg d "$1" '.node = $n | .disk_size = $d'; }
beside=$(AS=$ALICE submit "$(sh_in host 'echo before >/tmp/x; while [ ! -e /outputs/go ]; do sleep 0.1; done; echo after >>/tmp/x; cat /tmp/x' | on_small 64MB)")
AS=$ALICE wait_for "$beside" running 60
JOB=$(AS=$MALLORY submit "$(sh_in host 'head -c 300000000 /dev/zero >/tmp/all; sleep 900' | on_small 10GB)")
like "who fills the node's disk is ended" "$(AS=$MALLORY how "$JOB" 120)|$(AS=$MALLORY job "$JOB" .detail)" '^failed signaled .*the node.s disk is full'
touch "$BASE/$small.data/outputs/$(AS=$ALICE get "/v1/jobs/$beside/attempts" | jq -r '.items[0].id')/go"
is "... and who is beside them goes on" "$(AS=$ALICE how "$beside" 60)|$(AS=$ALICE logs "$beside")" "done succeeded 0|before
after"
stop "$AGENT"
ok "the small disk can be let go" until_ok 20 umount "$BASE/$small.data"

AS=$MALLORY call POST "/v1/jobs/$box/cancel" '{"grace":"0s"}'
AS=$MALLORY wait_end "$box"

finish
