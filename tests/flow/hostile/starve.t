#!/usr/bin/env bash
# starve.t - a tenant who takes all that it can get, and its neighbour of another project on the same node: who keeps at least 95 % of what it was given.
# Counted by the kernel (processor time, bytes, processes), never by how long something took: this machine has other things to do.
. "$(dirname "$0")/../lib.sh"
cloud_up --sim-gpus 0
arcus projects create blue >/dev/null
blue() { call POST '/v1/jobs?project=blue' "$1"; field .id; }                               # the one who takes
bjob() { get "/v1/jobs/$1?project=blue" | jq -r "${2:-.state}"; }
bstate() { [[ " $2 " == *" $(bjob "$1") "* ]]; }
blogs() { get "/v1/jobs/$1/logs?project=blue"; }
bend() { call POST "/v1/jobs/$1/cancel?project=blue" '{"grace":"0s"}'; until_ok 60 bstate "$1" 'cancelled done failed'; }
attempt_of() { get "/v1/jobs/$1/attempts?project=$2" | jq -r '.items[0].id'; }
group() { find /sys/fs/cgroup -path "*arcus/$1/$2" | head -n 1; }                            # group ATTEMPT FILE: of whichever hierarchy has it
number() { cat "$(group "$1" "$2")" 2>/dev/null || cat "$(group "$1" "$3")" 2>/dev/null; }   # number ATTEMPT FILE-OF-V2 FILE-OF-V1

# --- processors: the neighbour was given a whole one, the other half of one
busy() { printf 'for i in %s; do (while :; do :; done) & done; echo on; sleep 600' "$1"; }
me=$(submit "$(sh_job "$(busy '1 2')" '{"cpus":1}')") hog=$(blue "$(sh_job "$(busy '1 2 3 4 5 6 7 8 9 10 11 12')" '{"cpus":0.5}')")
wait_for "$me" running 60; until_ok 60 bstate "$hog" running
A=$(attempt_of "$me" default) B=$(attempt_of "$hog" blue)
clock() { local f; f=$(group "$1" cpuacct.usage); echo "${f:-$(group "$1" cpu.stat)}"; }           # once: to look for it takes time
usec() { if [[ $1 == *.usage ]]; then echo $(($(cat "$1") / 1000)); else awk '/^usage_usec/ {print $2}' "$1"; fi; }
CA=$(clock "$A") CB=$(clock "$B")
until_ok 60 eval '[ "$(usec $CA)" -gt 200000 ] && [ "$(usec $CB)" -gt 200000 ]'
now() { echo $(($(date +%s%N) / 1000)); }
spent() { awk '/^cpu / {printf "%d0000\n", $2 + $3 + $4 + $7 + $8 + $9; exit}' /proc/stat; }         # by all of the machine, in microseconds
SUM_HAD=0 SUM_TOOK=0
look() { # for a second and a half: how long it was for each of them, HAD, TOOK, and whether nobody else wanted the processors meanwhile
    local wa wb a b s
    wb=$(now) b=$(usec "$CB") a=$(usec "$CA") wa=$(now) s=$(spent)
    sleep 1.5
    OF_A=$(($(now) - wa)) HAD=$(($(usec "$CA") - a)) TOOK=$(($(usec "$CB") - b)) OF_B=$(($(now) - wb)) OTHERS=$(($(spent) - s - HAD - TOOK))
    SUM_HAD=$((SUM_HAD + HAD)) SUM_TOOK=$((SUM_TOOK + TOOK))
    note "in $((OF_A / 1000)) ms the neighbour had $((HAD / 1000)), twelve loops beside it $((TOOK / 1000)), the rest of the machine $((OTHERS / 1000))"
}
look
ok "refused: more of the processors than was given, whatever the number of processes" test $((TOOK * 100)) -le $((OF_B * 50 * 110 / 100 + 5000000))
weight() { number "$1" cpu.weight cpu.shares; }
ok "... or a greater part of them where others want them, too" test "$(($(weight "$A") * 10))" -ge "$(($(weight "$B") * 15))"
# All of its processor, or, while others who are not the cloud's want it too, at least its part of what the cloud gets: two thirds.
alone() { [ $OTHERS -le $((OF_A * $(nproc) / 10)) ]; }
keeps() { [ $((HAD * 100)) -ge $((OF_A * 95)) ] || { ! alone && [ $((HAD * 100)) -ge $((TOOK * 190)) ]; }; }
for _ in 1 2 3 4; do keeps && break; look; done
if ! keeps && ! alone && [ $((SUM_HAD * 2)) -ge $SUM_TOOK ]; then     # unclear; who was starved had far less
    skip "... and the neighbour keeps its own" "others who are not the cloud's use this machine too"
else
    ok "... and the neighbour keeps its own" keeps
fi
bend "$hog"
call POST "/v1/jobs/$me/cancel" '{"grace":"0s"}'
wait_end "$me"

# --- memory: the neighbour holds 60 MB while the other asks for a gigabyte
hold='my $x = ""; $x .= "k" x (1 << 20) for 1 .. 60; $| = 1; print "held\n"; while (! -e "/outputs/look") { select undef, undef, undef, 0.1 } print "kept ", ($x =~ tr/k//) >> 20, "\n"'
me=$(submit "$(jq -nc --arg s "$hold" '{command: ["perl", "-e", $s], cpus: 0.5, memory: "256MB"}')")
until_ok 60 has_said "$me" held
A=$(attempt_of "$me" default)
before=$(number "$A" memory.current memory.usage_in_bytes)
hog=$(blue "$(jq -nc '{command: ["perl", "-e", "my @x; push @x, \"x\" x (8 << 20) for 1 .. 128; print \"had it\\n\""], cpus: 0.5, memory: "64MB"}')")
until_ok 60 bstate "$hog" 'failed done'
is "refused: more memory than was given" "$(bjob "$hog" .outcome)|$(blogs "$hog")" "out_of_memory|"
within "... and the neighbour keeps what it holds" "$(number "$A" memory.current memory.usage_in_bytes)" $((before * 95 / 100)) $((before * 2))
touch "$DATA/agent/outputs/$A/look"
is "... to the last byte" "$(how "$me" 60)|$(logs "$me" | tail -n 1)" "done succeeded 0|kept 60"

# --- disk: each was given 64 MB to write to
fill='my $n = 0; open my $f, ">", "/tmp/all" or die; while (defined(my $w = syswrite $f, "x" x 65536)) { $n += $w } print "wrote ", $n >> 20, "\n"; '
hog=$(blue "$(jq -nc --arg s "\$| = 1; $fill sleep 600" '{command: ["perl", "-e", $s], cpus: 0.5, memory: "256MB", disk_size: "64MB"}')")
until_ok 60 eval 'blogs "$hog" | grep -q wrote'
took=$(blogs "$hog" | sed -n 's/^wrote //p')
within "refused: more disk than was given" "$took" 40 64
me=$(submit "$(jq -nc --arg s "$fill" '{command: ["perl", "-e", $s], cpus: 0.5, memory: "256MB", disk_size: "64MB"}')")
HOW=$(how "$me" 60)
within "... and the neighbour can write as much" "$(logs "$me" | sed -n 's/^wrote //p')" $((took * 95 / 100)) 64
bend "$hog"

# --- processes: ten thousand are asked for, which also must not hang whoever counts and ends them
forks='my $n = 0; $SIG{CHLD} = "IGNORE"; for (1 .. 10000) { my $p = fork; last if !defined $p; if (!$p) { sleep 900; exit } $n++ } print "made $n\n"; '
hog=$(blue "$(jq -nc --arg s "\$| = 1; $forks sleep 900" '{command: ["perl", "-e", $s], cpus: 1, memory: "2GB"}')")
until_ok 90 eval 'blogs "$hog" | grep -q made || bstate "$hog" "failed done"'
B=$(attempt_of "$hog" blue)
within "refused: ten thousand processes" "$(blogs "$hog" | sed -n 's/^made //p')" 100 4200
limit=$(cat "$(group "$B" pids.max)")
few='my @p; for (1 .. 200) { my $p = fork; die "no more" if !defined $p; if (!$p) { sleep 60; exit } push @p, $p } print "made ", scalar @p, "\n"; kill 9, @p'
me=$(submit "$(jq -nc --arg s "$few" '{command: ["perl", "-e", $s], cpus: 1, memory: "512MB"}')")
is "... and the neighbour makes its own" "$(how "$me" 90)|$(logs "$me")" "done succeeded 0|made 200"
ok "... the agent ends them all" bend "$hog"
gone() { [ -z "$(group "$B" cgroup.procs)" ] || [ ! -s "$(group "$B" cgroup.procs)" ]; }
ok "... to the last one" until_ok 60 gone

# --- limits, as root inside: none of them can be raised, and nobody else be looked at or ended
me=$(submit "$(sh_job 'echo here; sleep 600' '{"name":"victim"}')")
wait_for "$me" running 60
tries='use strict; $| = 1; my @got; sub try { my ($name, $rc) = @_; push @got, $name if defined $rc && $rc >= 0 && $rc ne "" }
for my $root ("/sys/fs/cgroup", "/proc/1/root/sys/fs/cgroup") { for my $f (glob("$root/*.max $root/*.weight $root/*/*.limit_in_bytes $root/*/pids.max $root/*/cpu.cfs_quota_us $root/cgroup.procs $root/*/cgroup.procs")) { my $h; push @got, "wrote $f" if open($h, ">", $f) && syswrite($h, "max\n") } }
for my $t ("cgroup2", "cgroup", "proc", "tmpfs", "bpf") { push @got, "mounted $t" if syscall(165, my $a = "x", my $b = "/mnt", my $c = $t, 0, 0) == 0 }
push @got, "unshared" if syscall(272, 0x10000000) == 0;
push @got, "module" if syscall(313, 0, my $e = "", 0) == 0 || !$!{EPERM};
push @got, "old module" if syscall(175, my $m = "x" x 64, 64, my $o = "") == 0 || !$!{EPERM};
push @got, "unloaded" if syscall(176, my $n = "fuse", 0) == 0 || !$!{EPERM};
my @others = grep { $_ != $$ && $_ != 1 && $_ != getppid } map { m{/(\d+)$} } glob("/proc/[0-9]*"); push @got, "sees @others" if @others;
for my $p (1 .. 400, 1000, 30000) { next if $p == $$ || $p == 1; push @got, "traced $p" if syscall(101, 16, $p, 0, 0) == 0; push @got, "killed $p" if kill 9, $p }
my $more = pack("QQ", 1 << 30, 1 << 30); for my $what (4, 7, 14) { push @got, "limit $what" if syscall(302, 0, $what, $more, 0) == 0 }
push @got, "nice" if syscall(141, 0, 0, -20) == 0;
print "got: @got\n"'
JOB=$(blue "$(jq -nc --arg s "use Errno; $tries" '{command: ["perl", "-MErrno", "-e", $s], cpus: 0.5, memory: "128MB"}')")
until_ok 60 bstate "$JOB" 'done failed'
is "refused: cgroup limits, mounts, modules, tracing, other tasks, limits of its own" "$(bjob "$JOB" .outcome)|$(blogs "$JOB")" "succeeded|got: "
is "... and the victim runs" "$(job "$me")" running

# --- a FIFO where somebody expects a file
arcus exec "$me" -- sh -c 'mkfifo /outputs/pipe /tmp/pipe /tmp/into; echo fine >/outputs/fine' </dev/null
mkdir "$BASE/got"
bounded() { timeout 60 "$ARCUS" "$@" </dev/null >"$BASE/cp.log" 2>&1; [ $? != 124 ]; }       # whatever it says, it comes to an end
ok "a folder with a FIFO is fetched to its end" bounded cp "$me:/outputs" "$BASE/got"
is "... without it" "$(cd "$BASE/got" && find . -type f -name fine | wc -l) $(find "$BASE/got" -type p | wc -l)" "1 0"
ok "a FIFO itself hangs nobody who fetches it" bounded cp "$me:/tmp/pipe" "$BASE/got/one"
ok "... nor who writes to it" bounded cp "$BASE/got/outputs/fine" "$me:/tmp/into"
JOB=$(submit "$(sh_job 'mkfifo /outputs/a; rm -rf /outputs/fine; exec >/outputs/a')")
until_ok 60 in_state "$JOB" running
ok "... and one that waits on its own FIFO is ended" eval 'call POST "/v1/jobs/$JOB/cancel" "{\"grace\":\"0s\"}"; until_ok 60 in_state "$JOB" cancelled'
ok "what an ended task left is fetched all the same" bounded cp "$JOB:/outputs" "$BASE/got/ended"
like "... and the agent still answers" "$(arcus exec "$me" -- echo yes </dev/null)" yes

# --- logs: 60 MB of them where 1 MB is kept
JOB=$(blue "$(jq -nc '{command: ["perl", "-e", "print \"x\" x 99, \"\\n\" for 1 .. 600000; print \"end\\n\""], cpus: 1, memory: "128MB", log_size: "1MB"}')")
until_ok 90 bstate "$JOB" 'done failed'
within "refused: a disk full of logs" "$(du -sk "$DATA/agent/logs/$(attempt_of "$JOB" blue)" | cut -f 1)" 0 4096
is "... of which the end is kept" "$(blogs "$JOB" | tail -n 1)" end
finish
