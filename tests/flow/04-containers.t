#!/usr/bin/env bash
# 04-containers.t - the walls around a task of `image: host`: what it cannot read, do or take more of. Each list of things that a task must not be able to
# do is also tried on the host, as root, where it must succeed: a check that cannot fail is no check.
FLOW_HOME=/opt . "$(dirname "$0")/lib.sh"       # not under /tmp, which a task never sees anyway
export FLOW_WORD=not-for-tasks
cloud_up
JOB=$(submit "$(sh_job 'echo private >/outputs/mine; echo private >/tmp/mine; echo private-log; while :; do sleep 1; done' '{"name":"neighbour"}')")
until_ok 10 has_said "$JOB" private-log
NEIGHBOUR=$(get "/v1/jobs/$JOB/attempts" | jq -r '.items[0].id')
mkdir -p /var/lib/arcus-flow-$$ && echo word >"/var/lib/arcus-flow-$$/file"
trap 'rm -rf /var/lib/arcus-flow-$$; leave' EXIT

# --- what it cannot read
paths="$DATA/arcus.db $DATA/admin.key $DATA/keys/seal.key $DATA/keys/hash.key $DATA/address $DATA/agent/node.json $DATA/agent/logs/$NEIGHBOUR $DATA/agent/outputs/$NEIGHBOUR
$DATA/agent/outputs/$NEIGHBOUR/mine $RUN/tasks $RUN/bin/arcus-task $ARCUS_CONFIG /var/lib/arcus-flow-$$/file /var/lib/dpkg/status /root/. /etc/shadow /run/. /proc/kcore"
can_read='for p in '$(tr '\n' ' ' <<<"$paths")'; do if [ -d "$p" ]; then [ -n "$(ls -A "$p" 2>/dev/null)" ] && echo "$p"; elif head -c 1 "$p" 2>/dev/null | grep -aq .; then echo "$p"; fi; done'
touch /root/.arcus-flow-$$ 2>/dev/null
on_host=$(sh -c "$can_read")
rm -f /root/.arcus-flow-$$
is "the host's root can read nearly all of them: the check can fail" "$(comm -23 <(tr ' ' '\n' <<<"$paths" | sort) <(sort <<<"$on_host") | grep -v kcore)" ""
others="-path '/opt/arcus-*' -prune -o"          # what other tests have in /opt at this moment
run_sh "$can_read; ls -A /root /home /tmp; find / -xdev $others -name admin.key -print 2>/dev/null; find / $others -name '*.db' -path '*arcus*' -print 2>/dev/null"
is "a task can read none of: the store, keys, sockets, /root, other tasks' files, logs and outputs" "$(grep -vxE '|/(root|home|tmp):|/run/\.' <<<"$OUT")" ""
run_sh "find / $others -type s -print 2>/dev/null;"' ls -A /run; ls -l /proc/self/fd | wc -l; env | grep -cE "FLOW_WORD|ASAN|LSAN|TMPDIR|ARCUS_CONFIG"; cat; echo end'
is "no socket, nothing in /run, no descriptor beside its own, nothing of our environment, an empty input" "$OUT" "5
0
end"
run_sh 'for f in /etc/x /usr/x /bin/x /opt/x '"$BASE"'/x /sys/x /proc/sys/kernel/hostname; do (echo x >$f) 2>/dev/null && echo "$f"; done; echo x >/flow-root-'"$NODE"' && echo x >/tmp/x-'"$NODE"' && echo x >/outputs/x && echo wrote'
is "the host's folders are read-only; /, /tmp and /outputs are its own" "$OUT" "wrote"
run_sh 'ls /tmp; ls /outputs; echo done'
is "/tmp and /outputs are its own" "$OUT" done
is "... and nothing of it is on the host" "$(ls "/tmp/x-$NODE" "/flow-root-$NODE" 2>/dev/null)" ""

# --- who it is
run_sh 'for n in user pid mnt net ipc uts; do readlink /proc/self/ns/$n; done; cat /proc/self/uid_map; ls -d /proc/[0-9]* | wc -l; hostname; grep -E "^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):" /proc/self/status' '{"name":"who"}'
shared=''
for n in user pid mnt net ipc uts; do grep -qxF "$(readlink /proc/self/ns/$n)" <<<"$OUT" && shared+="$n "; done
is "its six namespaces are its own" "$shared $(grep -cE '^[a-z]+:\[' <<<"$OUT")" " 6"
read -r inside outside size < <(grep -E '^ +0 ' <<<"$OUT")
ok "its root is nobody on the host ($outside, $size ids)" test "$inside" = 0 -a "$outside" -ge 65536 -a "$size" -le 65536
within "it sees only its own processes" "$(grep -xE '[0-9]+' <<<"$OUT")" 1 4
ok "it has a host name of its own" test "$(hostname)" != who -a -n "$(grep -x who <<<"$OUT")"
is "its capabilities are the list and nothing more; no privileges to gain; a system call filter" "$(grep -E '^(Cap|NoNew|Secc)' <<<"$OUT" | tr -s '\t ' ' ')" "CapInh: 0000000000000000
CapPrm: 00000000200405fb
CapEff: 00000000200405fb
CapBnd: 00000000200405fb
CapAmb: 0000000000000000
NoNewPrivs: 1
Seccomp: 2"
call POST /v1/jobs "$(sh_job 'sleep 600' '{"count":2,"name":"two"}')"
TWO=$(field .id)
until_ok 10 eval '[ "$(job $TWO .running)" = 2 ]'
is "two tasks have ids apart" "$(get "/v1/jobs/$TWO/attempts" | jq -r '.items[].id' | while read -r a; do awk '{print $2}' "/proc/$(first_pid "$a")/uid_map"; done | sort -u | wc -l)" 2
call POST "/v1/jobs/$TWO/cancel" '{"grace":"0s"}'

# --- what it cannot do
cat >"$BASE/tries.pl" <<'EOF'
sub try { my ($name, $got) = @_; print "$name\n" if $got }
my ($none, $tmp, $fs, $dev, $flow, $x, $empty) = ("none", "/tmp", "tmpfs", "/tmp/flow-null.$$", "flow", "x", "");
try("raw socket", socket(my $a, 2, 3, 1));
try("packet socket", socket(my $b, 17, 3, 768));
try("mount", syscall(165, $none, $tmp, $fs, 0, 0) == 0 && syscall(166, $tmp, 0) == 0);
try("mknod", syscall(133, $dev, 0020666, 259) == 0 && unlink($dev));
try("bpf", do { my $m = pack("LLLLL", 2, 4, 4, 1, 0) . "\0" x 100; syscall(321, 0, $m, length $m) >= 0 });
try("host name", syscall(170, $flow, 4) == 0);
try("kernel log", do { my $t = "\0" x 100; syscall(103, 3, $t, 100) > 0 });
try("open by handle", do { my $h = pack("LLQ", 8, 1, 2) . "\0" x 128; open(my $f, "<", "/"); syscall(304, fileno($f), $h, 0) >= 0 || $! != 1 && $! != 38 });
try("kernel module", syscall(175, $x, 1, $empty) == 0 || $! != 1 && $! != 38);
try("keyring", syscall(248, $flow, $flow, $x, 1, -2) >= 0);
try("user namespace", syscall(272, 0x10000000) == 0);
EOF
uts=$(hostname)
on_host=$(unshare --uts --mount perl "$BASE/tries.pl" | sort)
note "the host's root can: $(tr '\n' ',' <<<"$on_host")"
like "the host's root can mount and make devices: the check can fail" "$(tr '\n' ' ' <<<"$on_host")" 'mount'
like "... and make namespaces" "$(tr '\n' ' ' <<<"$on_host")" 'user namespace'
is "the host kept its name" "$(hostname)" "$uts"
run_sh "cat >/tmp/t.pl <<'X'
$(cat "$BASE/tries.pl")
X
perl /tmp/t.pl"
is "a task can do none of them" "$OUT" ""
is "... and the list ran to its end" "$HOW" "done succeeded 0"
run_sh 'ls /dev | sort | tr "\n" " "; for d in /dev/mem /dev/kmsg /dev/loop0 /dev/sda /dev/fuse /dev/kvm; do [ -e $d ] && echo $d; done; echo x >/dev/null && head -c 1 /dev/urandom >/dev/null && echo usable'
is "its devices are the harmless ones" "$OUT" "$(printf 'console\ncore\nfd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n' | grep -xF "$(sed 's/ /\n/g' <<<"${OUT% usable}")" | tr '\n' ' ')usable"
ok "the server answers on the host's loopback: the check can fail" bash -c "exec 3<>/dev/tcp/127.0.0.1/${URL##*:}"
run_sh "bash -c 'exec 3<>/dev/tcp/127.0.0.1/${URL##*:}' 2>/dev/null && echo connected"
is "a task does not reach it" "$HOW|$OUT" "failed exited 1|"
run_sh "ls /sys/class/net | tr '\n' ' '" '{"network":"none"}'
is "... and one that wants no network has only its own loopback" "$OUT" "lo "

# --- what it cannot take more of
run_sh 'df -m /dev/shm | awk "NR == 2 {print \$2}"; head -c 9M /dev/zero >/dev/shm/x 2>/dev/null || echo full; stat -c %s /dev/shm/x' '{"shm_size":"8MB"}'
is "/dev/shm has the size that was asked" "$OUT" "8
full
8388608"
run_sh 'head -c 100M /dev/zero >/tmp/x 2>/dev/null || echo full; [ $(stat -c %s /tmp/x) -lt 70000000 ] && echo bounded' '{"disk_size":"64MB"}'
is "the disk it may write is bounded" "$OUT" "full
bounded"
run_sh 'perl -e "my \$e = time + 3; 1 while time < \$e; printf qq(%d\n), 1000 * (times)[0]"' '{"cpus":0.2}'
within "a fifth of a CPU is what it gets at most (ms of 3 s)" "${OUT:-0}" 1 1000
run_sh 'perl -e "my @p; while (defined(my \$p = fork)) { if (!\$p) { sleep 60; exit } push @p, \$p } print scalar(@p), qq(\n); kill 9, @p"' '{"memory":"2GB","cpus":1}'
within "it cannot have more than 4096 processes" "${OUT:-0}" 1000 4095
JOB=$(submit "$(sh_job 'sleep 600' '{"memory":"96MB","disk_bandwidth":"10MB"}')")
wait_for "$JOB" running
A=$(get "/v1/jobs/$JOB/attempts" | jq -r '.items[0].id')
is "its memory limit stands in the kernel" "$(cat "/sys/fs/cgroup/memory/arcus/$A/memory.limit_in_bytes" "/sys/fs/cgroup/arcus/$A/memory.max" 2>/dev/null)" $((96 << 20))
is "... and its processes cannot raise it: the supervisor is not among them" "$(cat "$(find /sys/fs/cgroup -path "*arcus/$A/cgroup.procs" | head -n 1)" | while read -r p; do readlink "/proc/$p/exe"; done | grep -c arcus-task)" 0
if get "/v1/nodes/$NODE" | jq -e '[.info.cannot[] | select(test("disk_bandwidth"))] == []' >/dev/null; then
    like "... and so does that of its disk" "$(cat "/sys/fs/cgroup/blkio/arcus/$A/blkio.throttle.write_bps_device" "/sys/fs/cgroup/arcus/$A/io.max" 2>/dev/null)" '^[0-9]+:[0-9]+ (10485760|rbps=10485760 wbps=10485760)'
else
    skip "... and so does that of its disk" "this node's disk has none"
fi
call POST "/v1/jobs/$JOB/cancel" '{"grace":"0s"}'

# --- what the operator did not allow
agent_without=$(get "/v1/nodes/$NODE" | jq -r '.info.host_image')
is "this node allows image: host, as up does" "$agent_without" true
finish
