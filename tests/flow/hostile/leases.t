#!/usr/bin/env bash
# leases.t - two tenants with a GPU each, on one node: each has its own and nothing of the other's. The driver is made up; devices of this machine that every
# root may open stand for the GPUs, so that a rule that is missing shows.
. "$(dirname "$0")/../lib.sh"

LIB=$BASE/driver
mkdir -p "$LIB/lib"
cp "$(dirname "$ARCUS")/fake/libnvidia-ml.so.1" "$LIB/" || give_up "the made-up library is not built"
echo 'gpus 2' >"$LIB/nvml.conf"
nodes=()
for d in /dev/fuse /dev/kvm /dev/net/tun /dev/loop-control /dev/autofs /dev/hwrng; do [ ${#nodes[@]} -lt 2 ] && perl -e 'exit !sysopen(my $f, $ARGV[0], 2048)' "$d" && nodes+=("$d"); done
[ ${#nodes[@]} = 2 ] || { skip "two devices stand for GPUs" "this machine has no two that can be opened"; finish; }
uuid() { echo "GPU-fa4e0000-0000-0000-0000-00000000000$1"; }
echo 'the code of the driver' >"$LIB/lib/libcuda.so.580.1.2"
ln -s libcuda.so.580.1.2 "$LIB/lib/libcuda.so.1"
mkdir -m 755 "$BASE/cdi"
spec() { # spec HOOKS: of both GPUs, with one library
    jq -n --arg a "$(uuid 0)" --arg b "$(uuid 1)" --arg na "${nodes[0]}" --arg nb "${nodes[1]}" --arg lib "$LIB/lib/libcuda.so.580.1.2" --argjson hooks "$1" '
    {cdiVersion: "0.6.0", kind: "nvidia.com/gpu", containerEdits: {env: ["NVIDIA_VISIBLE_DEVICES=void", "FROM_SPEC=yes"], hooks: $hooks,
        mounts: [{hostPath: $lib, containerPath: "/usr/lib64/libcuda.so.580.1.2", options: ["ro", "nosuid", "nodev", "bind"]}]},
     devices: [{name: $a, containerEdits: {deviceNodes: [{path: "/dev/nvidia0", hostPath: $na}]}}, {name: $b, containerEdits: {deviceNodes: [{path: "/dev/nvidia1", hostPath: $nb}]}}]}' >"$BASE/cdi/new" \
        && mv "$BASE/cdi/new" "$BASE/cdi/nvidia.json"
}
spec '[{"hookName":"createContainer","path":"/usr/bin/nvidia-cdi-hook","args":["nvidia-cdi-hook","update-ldcache","--folder","/usr/lib64"]}]'
cloud_up --nvml "$LIB/libnvidia-ml.so.1" --cdi "$BASE/cdi"
is "two GPUs are offered" "$(get /v1/gpus | jq -c '[.items[].state]')" '["free","free"]'

# --- each its own
dir=$BASE/image
mkdir -p "$dir/root"/{bin,proc,sys,dev,etc,tmp,usr} && cp /bin/busybox "$dir/root/bin/"
for word in sh cat ls echo sleep readlink grep sed tr; do ln -s busybox "$dir/root/bin/$word"; done
image() { # image NAME: of $dir/root as it is
    tar -C "$dir/root" -cf "$dir/layer.tar" .
    jq -nc --arg s "sha256:$(sha256sum "$dir/layer.tar" | cut -d ' ' -f 1)" '{architecture: "amd64", os: "linux", config: {Env: ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all", "LD_LIBRARY_PATH=/opt/mine"]}, rootfs: {type: "layers", diff_ids: [$s]}}' >"$dir/config.json"
    echo '[{"Config":"config.json","RepoTags":["image:1"],"Layers":["layer.tar"]}]' >"$dir/manifest.json"
    tar -C "$dir" -cf "$dir/image.tar" manifest.json config.json layer.tar && arcus image import "$dir/image.tar" --name "$1" >/dev/null
}
ok "an image without a driver" image plain
in_image() { jq -nc --arg i "$1" --arg s "$2" --argjson more "${3:-{\}}" '{image: $i, command: ["sh", "-c", $s], cpus: 0.1, memory: "128MB", gpus: 1} + $more'; }
sees='ls /dev | grep nvidia | tr "\n" " "; echo "$CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $FROM_SPEC"'
hold='while [ ! -e /mnt/done ]; do sleep 0.05; done; perl -e '\''for (@ARGV) { print "$_ ", (sysopen(my $f, $_, 2048) ? "opened" : $!{EPERM} ? "EPERM" : $!), "\n" }'\'' /dev/nvidia* /mnt/0 /mnt/1; while [ ! -e /mnt/end ]; do sleep 0.1; done'
one=$(submit "$(sh_job "$sees; $hold" '{"gpus":1}')") two=$(submit "$(sh_job "$sees; $hold" '{"gpus":1}')")
wait_for "$one" running 60
wait_for "$two" running 60
until_ok 60 has_said "$one" yes && until_ok 60 has_said "$two" yes
is "each sees one GPU, by the number 0 and its UUID" "$({ logs "$one"; logs "$two"; } | sort)" "nvidia0 0 $(uuid 0) yes
nvidia1 0 $(uuid 1) yes"

# --- and not the other's, even if its node is in its root
first=$(logs "$one" | grep -oE 'nvidia[01]' | head -n 1)
for j in "$one" "$two"; do
    p=$(first_pid "$(get "/v1/jobs/$j/attempts" | jq -r '.items[0].id')")
    for i in 0 1; do echo "mknod /mnt/$i c $((0x$(stat -c %t "${nodes[$i]}"))) $((0x$(stat -c %T "${nodes[$i]}")))"; done | { echo 'umask 0; mount -t tmpfs -o mode=755 planted /mnt || exit 1'; cat; echo 'echo >/mnt/done'; } | nsenter -t "$p" -m sh -s
done
until_ok 60 has_said "$one" /mnt/1 && until_ok 60 has_said "$two" /mnt/1
own=${first#nvidia} other=$((1 - ${first#nvidia}))
is "its own opens; the other tenant's, put into its root, is EPERM" "$(logs "$one" | tail -n 3)" "$(printf '/dev/nvidia%s opened\n' "$own"; for i in 0 1; do [ $i = "$own" ] && echo "/mnt/$i opened" || echo "/mnt/$i EPERM"; done)"
is "... and the other way round" "$(logs "$two" | tail -n 3)" "$(printf '/dev/nvidia%s opened\n' "$other"; for i in 0 1; do [ $i = "$other" ] && echo "/mnt/$i opened" || echo "/mnt/$i EPERM"; done)"
ask='perl -e '\''for (@ARGV) { print "$_ ", (sysopen(my $f, $_, 2048) ? "opened" : $!{EPERM} ? "EPERM" : $!), "\n" }'\'' '"/mnt/$other"
is "... nor for a process that exec adds" "$(arcus exec "$one" -- sh -c "$ask" </dev/null)" "/mnt/$other EPERM"
for j in "$one" "$two"; do call POST "/v1/jobs/$j/cancel" '{"grace":"0s"}'; done
wait_end "$one" 60; wait_end "$two" 30
run_sh 'ls /dev | grep nvidia; echo "[$CUDA_VISIBLE_DEVICES] $NVIDIA_VISIBLE_DEVICES [$FROM_SPEC]"'
is "who has leased none sees none" "$OUT" "[] void []"

# --- the driver in an image that has none
JOB=$(submit "$(in_image plain 'ls /dev | grep -c nvidia; echo "$LD_LIBRARY_PATH $NVIDIA_VISIBLE_DEVICES" | sed "s/GPU-.*/GPU/"; cat /usr/lib64/libcuda.so.580.1.2; readlink /usr/local/nvidia/lib64/libcuda.so.1; cat /usr/local/nvidia/lib64/libcuda.so.1; for f in /usr/lib64/libcuda.so.580.1.2 /usr/local/nvidia/x /usr/local/nvidia/lib64/x; do (echo x >$f) 2>/dev/null && echo "wrote $f"; done; echo x >/usr/lib64/mine && echo end')")
is "libraries lie where the spec says, links in a folder of ours, behind the image's own path; none of it can be written" "$(how "$JOB" 60)|$(logs "$JOB")" "done succeeded 0|1
/opt/mine:/usr/local/nvidia/lib64:/usr/lib64 GPU
the code of the driver
/usr/lib64/libcuda.so.580.1.2
the code of the driver
end"
is "... and the node's file is what it was" "$(cat "$LIB/lib/libcuda.so.580.1.2")" "the code of the driver"

# --- an image with a link where the driver belongs, and a spec that wants a program run
mkdir -m 777 "$BASE/victim"
ln -s "$BASE/victim" "$dir/root/usr/lib64"
ok "an image with a link" image linked
JOB=$(submit "$(in_image linked 'echo ran')")
like "a link of the image in the driver's way ends the start with that reason" "$(how "$JOB" 60) $(job "$JOB" .detail)" '^failed start_failed .*the image has a link'
is "... and nothing was written through it" "$(ls -A "$BASE/victim")" ""
JOB=$(submit "$(in_image linked 'echo ran' '{"gpus":0}')")
is "... and without a GPU it runs" "$(how "$JOB" 60)|$(logs "$JOB")" "done succeeded 0|ran"
spec "[{\"hookName\":\"createContainer\",\"path\":\"$BASE/victim/hook\"}]"
unusable() { [ "$(get /v1/gpus | jq -c '[.items[].state]')" = '["unhealthy","unhealthy"]' ]; }
ok "a spec with a hook that is not known makes its GPUs unusable" until_ok 60 unusable
like "... and the node says why" "$(get "/v1/nodes/$NODE" | jq -r '.info.cannot[]')" "nvidia.json: it asks for the hook '$BASE/victim/hook', and hooks are not run"
finish
