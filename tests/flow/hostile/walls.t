#!/usr/bin/env bash
# walls.t - root inside a container against the walls that need no network: raw devices, links where things are mounted, descriptors and the program of
# the runtime, core dumps, limits, and what /proc and /sys tell. Each check is one attempt; where it can be, the same is done where it must
# succeed, so that the check can fail.
. "$(dirname "$0")/../lib.sh"
cloud_up --sim-gpus 1

# --- raw devices. Real nodes are put into the task's root from outside, on a file system on which devices count.
planted() { # planted SCRIPT NAME:MAJOR:MINOR:TYPE...: runs the script once the nodes are in /mnt
    local script=$1 node name major minor type p attempt
    shift
    JOB=$(submit "$(sh_job "while [ ! -e /mnt/done ]; do sleep 0.05; done; $script")")
    wait_for "$JOB" running 60
    attempt=$(get "/v1/jobs/$JOB/attempts" | jq -r '.items[0].id')
    p=$(first_pid "$attempt")
    {
        echo 'umask 0; mount -t tmpfs -o mode=755 planted /mnt || exit 1'
        for node in "$@"; do
            IFS=: read -r name major minor type <<<"$node"
            echo "mknod /mnt/$name $type $major $minor"
        done
        echo 'echo >/mnt/done'
    } >"$BASE/plant"
    nsenter -t "$p" -m sh -s <"$BASE/plant" || note "nothing could be planted"
    HOW=$(how "$JOB" 60) OUT=$(logs "$JOB")
}
open_all='for d in /mnt/*; do [ $d = /mnt/done ] || perl -e '\''print $ARGV[0] =~ m{([^/]+)$}, ": ", (sysopen(my $f, $ARGV[0], 2048) ? "opened" : $!{EPERM} ? "EPERM" : $!), "\n"'\'' $d; done'
raw=(null:1:3:c mem:1:1:c port:1:4:c fuse:10:229:c tun:10:200:c kvm:10:232:c vhost:10:238:c loop-control:10:237:c)
read -r major minor _ < <(awk 'NR > 2 {print $1, $2, $4; exit}' /proc/partitions)
raw+=("disk:${major:-8}:${minor:-0}:b" "loop:7:0:b")
[ -e /proc/devices ] && nvidia=$(awk '$2 == "nvidia" || $2 == "nvidia-frontend" {print $1; exit}' /proc/devices)
raw+=("gpu:${nvidia:-195}:0:c" "gpus:${nvidia:-195}:255:c")
planted "$open_all" "${raw[@]}"
is "null opens from there: the check can fail" "$(grep '^null' <<<"$OUT")" "null: opened"
for node in "${raw[@]:1}"; do
    is "refused: the raw device ${node%%:*}" "$(grep "^${node%%:*}:" <<<"$OUT")" "${node%%:*}: EPERM"
done
run_sh 'for m in /tmp /outputs /dev /dev/shm /; do mknod $m/null2 c 1 3 2>/dev/null && echo "made in $m"; done; echo end'
is "refused: making a device node" "$OUT" end

# --- /proc and /sys
run_sh 'for p in /proc/kcore /proc/keys /proc/latency_stats /proc/timer_list /proc/sched_debug /proc/scsi /proc/acpi /proc/asound /sys/firmware /sys/devices/virtual/powercap /proc/driver/nvidia; do
    if [ -d $p ]; then [ -z "$(ls -A $p 2>/dev/null)" ] || echo "$p shows"; elif head -c 1 $p 2>/dev/null | grep -aq .; then echo "$p shows"; fi; done
    for p in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward /proc/sysrq-trigger /proc/irq/default_smp_affinity /sys/kernel/uevent_helper /sys/power/state /sys/module/printk/parameters/time /sys/kernel/mm/transparent_hugepage/enabled /proc/1/oom_score_adj_x; do
    [ -e $p ] && (cat $p >/tmp/was; cat /tmp/was >$p) 2>/dev/null && echo "$p written"; done
    mount 2>/dev/null | grep -E " /sys(/| )" | grep -v "[(,]ro[,)]"; ls /sys/kernel/debug /sys/fs/bpf /sys/kernel/tracing /sys/kernel/security 2>/dev/null | grep -v ":$" | grep .; echo end'
for p in kcore keys latency_stats timer_list sched_debug scsi acpi asound driver/nvidia; do unlike "hidden: /proc/$p" "$OUT" "/proc/$p shows"; done
for p in firmware devices/virtual/powercap; do unlike "hidden: /sys/$p" "$OUT" "/sys/$p shows"; done
is "no switch of the kernel can be written, nothing of /sys is open" "$(grep -v ' shows' <<<"$OUT")" end
ok "the node's root sees some of them: the check can fail" sh -c '[ -s /proc/keys ] || head -c 1 /proc/keys /proc/timer_list /proc/kcore /sys/firmware/* 2>/dev/null | grep -aq .'
run_sh 'ls /proc | grep -cE "^[0-9]+$"; cat /proc/1/environ /proc/1/cmdline 2>/dev/null | tr "\0" "\n" | grep -c arcus-task; ls -d /proc/1/root/root /proc/1/root/home >/dev/null && ls -A /proc/1/root/root'
like "/proc has its own processes alone" "$(head -n 1 <<<"$OUT")" '^[1-9]$'

# --- limits and dumps
run_sh 'bash -c "ulimit -Hc; ulimit -Hr; ulimit -He; (ulimit -c unlimited) 2>/dev/null && echo raised; (ulimit -r 1) 2>/dev/null && echo raised; cd /tmp; bash -c \"kill -SEGV \\\$\\\$\" 2>/dev/null; ls -A" 2>/dev/null; chrt -f 1 true 2>/dev/null && echo realtime; nice -n -5 true 2>&1 | grep -q . || echo nicer; echo end'
is "no core dump, no real time, no better priority, and none of it can be had" "$(tr '\n' ' ' <<<"$OUT")" "0 0 0 end "
dumped() { find "$BASE" /tmp /var/lib/systemd/coredump /var/crash -xdev -newer "$BASE/plant" \( -name 'core' -o -name 'core.*' \) 2>/dev/null; }
is "... nor does the node get one" "$(dumped)" ""

# --- descriptors and the runtime's own program
fds='my @n = grep { defined readlink("/proc/self/fd/$_") } 0 .. 1023; print join(" ", map { readlink("/proc/self/fd/$_") =~ s/:.*//r } @n), "\n"'
JOB=$(submit "$(jq -nc --arg s "$fds" '{command: ["perl", "-e", $s], cpus: 0.1, memory: "128MB"}')")
is "no descriptor but its three" "$(how "$JOB")|$(logs "$JOB")" "done succeeded 0|/dev/null pipe pipe"
crun=$(readlink -f /usr/bin/crun) before=$(sha256sum "$crun")
box=$(submit "$(jq -nc '{command: ["perl", "-e", "$| = 1; print qq(ready\n); my %seen; for (;;) { for my $p (glob q(/proc/[0-9]*)) { my $l = readlink(qq($p/exe)); if (!defined $l) { print qq(seen\n) if -d $p && !$seen{none}++; next } next if $l =~ m{^/usr/bin/(perl|true)}; for my $how (1, 2, 1 | 512, 2 | 1024) { print qq(open $l for writing\n) if sysopen(my $f, qq($p/exe), $how) } } }"], cpus: 1, memory: "128MB"}')")
until_ok 60 has_said "$box" ready
is "... nor has one that exec adds" "$(arcus exec "$box" -- perl -e "$fds" </dev/null)" "pipe pipe pipe"
for _ in 1 2 3 4 5 6; do arcus exec "$box" -- /usr/bin/true; done
unlike "the program that makes containers cannot be opened for writing through /proc/PID/exe" "$(logs "$box")" 'for writing'
has_said "$box" seen && note "... and it was seen there"
is "... and is what it was" "$(sha256sum "$crun")" "$before"
call POST "/v1/jobs/$box/cancel" '{"grace":"0s"}'

# --- links where things are mounted, in an image and in a volume. Each image has a victim of its own on the node.
base=$BASE/base
mkdir -p "$base"/{bin,proc,sys,dev,etc,tmp,run,w} && cp /bin/busybox "$base/bin/"
for word in sh cat ls id stat head touch echo sleep pwd readlink; do ln -s busybox "$base/bin/$word"; done
image() { # image NAME WORKDIR SCRIPT: busybox, changed by the script, in which $root is its tree and $victim a folder of the node
    local dir=$BASE/$1.image root=$BASE/$1.image/root victim=$BASE/victim-$1
    mkdir "$dir" "$victim" && cp -a "$base" "$root" && echo kept >"$victim/file" && chmod 777 "$victim" && eval "$3" && tar -C "$root" -cf "$dir/layer.tar" . || return 1
    jq -nc --arg s "sha256:$(sha256sum "$dir/layer.tar" | cut -d ' ' -f 1)" --arg w "$2" '{architecture: "amd64", os: "linux", config: {WorkingDir: $w}, rootfs: {type: "layers", diff_ids: [$s]}}' >"$dir/config.json"
    echo '[{"Config":"config.json","RepoTags":["image:1"],"Layers":["layer.tar"]}]' >"$dir/manifest.json"
    tar -C "$dir" -cf "$dir/image.tar" manifest.json config.json layer.tar && arcus image import "$dir/image.tar" --name "$1" >/dev/null
}
intact() { [ "$(ls -A "$BASE/victim-$1")$(cat "$BASE/victim-$1/file")" = filekept ] && ! grep -q "$BASE/victim-$1" /proc/self/mountinfo; }
in_image() { jq -nc --arg i "$1" --arg s "$2" --argjson more "${3:-{\}}" '{image: $i, command: ["sh", "-c", $s], cpus: 0.1, memory: "128MB"} + $more'; }
ok "images of links are made" image links / 'for d in outputs workdir data deep; do ln -s "$victim" "$root/$d"; done; ln -s "../../../../../../..$victim" "$root/run/secrets"; ln -s "$victim/file" "$root/etc/hosts"'
for d in proc dev sys; do image "link-$d" / 'rmdir "$root/'$d'" && ln -s "$victim" "$root/'$d'"' || fail "an image whose /$d is a link" "" ""; done
ok "... and images whose work folder is a descriptor" image descriptor /proc/self/fd/7 :
for n in 5 7 9; do image "descriptor-$n" /w "rmdir \"\$root/w\" && ln -s /proc/self/fd/$n \"\$root/w\"" || fail "descriptor $n" "" ""; done
call POST /v1/volumes '{"name":"outer"}'
call POST /v1/volumes '{"name":"inner"}'
call PUT /v1/secrets/LINKED '{"value":"not-for-the-node"}'
declare -A at
at[links]=$(submit "$(in_image links 'echo mine >/outputs/x; echo mine >/data/x; echo 6.6.6.6 node >>/etc/hosts; cat /run/secrets/LINKED; ls /deep; echo end' '{"volumes":["outer:/data"],"secrets":["LINKED"]}')")
for d in proc dev sys; do at[link-$d]=$(submit "$(in_image "link-$d" 'echo ran')"); done
at[descriptor]=$(submit "$(in_image descriptor 'pwd; ls ../../../..')")
for n in 5 7 9; do at[descriptor-$n]=$(submit "$(in_image "descriptor-$n" 'cat etc/shadow ../etc/shadow ../../etc/shadow ../../../etc/shadow ../../../../etc/shadow; ls -A . | head -n 3; pwd')"); done
for i in "${!at[@]}"; do note "$i: $(how "${at[$i]}" 120) $(job "${at[$i]}" .detail) $(logs "${at[$i]}" | tr '\n' ' ' | head -c 200)"; done
ok "links of an image at the places of outputs, volumes, secrets and hosts lead nowhere on the node" intact links
unlike "... and show nothing of it" "$(logs "${at[links]}")" kept
for d in proc dev sys; do ok "a link in the place of /$d has nothing mounted on the node" intact "link-$d"; done
like "a work folder that is a descriptor of the runtime is refused" "$(job "${at[descriptor]}" '"\(.outcome) \(.detail)"')" '^start_failed .*work folder'
for n in 5 7 9; do unlike "a link to descriptor $n as the work folder leads to nothing of the node" "$(logs "${at[descriptor-$n]}")" 'root:|cgroup\.|kept'; done
victim=$BASE/victim-links
run_sh "ln -s '$victim' /data/sub; echo made" '{"volumes":["outer:/data"]}'
is "a volume with a link" "$OUT" made
run_sh "echo mine >/data/sub/x; ls '$victim' /data/sub; echo end" '{"volumes":["outer:/data","inner:/data/sub"]}'
note "$HOW $OUT $(job "$JOB" .detail)"
ok "a link in a volume at the place of another volume leads nowhere on the node" intact links
finish
