#!/usr/bin/env bash
# inject.sh - on a host with an NVIDIA GPU and no packages: does a task get exactly its GPU, and at full speed? Starts a cloud of its own from the
# bundle, prints TAP and a table. Needs root, python3 with PyTorch, and `arcus` with its crun beside it in PATH (or ARCUS=...).
#   PAIRS=5 tests/gpu/inject.sh
# Images are unpacked by skopeo and umoci, which such a host has not: stand-ins for one archive, seen by nobody but us.
if [ -z "${INJECT_INSIDE:-}" ]; then
    export INJECT_INSIDE=1
    exec unshare --mount --propagation private "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"
: "${PAIRS:=5}"
begin torch
note "nodes: $(ls -l /dev/nvidia* /dev/nvidia-caps 2>/dev/null | tr -s ' ' | cut -d' ' -f1,3-6,10- | tr '\n' ';')"
note "python: $PY, $("$PY" -c 'import torch; print(torch.__version__, torch.__file__)'); smi: $(command -v nvidia-smi), $(head -c 2 "$(command -v nvidia-smi)" | tr -dc '[:print:]'); libcuda: $(ldconfig -p | grep -m 1 libcuda.so.1), $(ls -l $(dirname "$(ldconfig -p | awk '/libcuda.so.1/ {print $NF; exit}')") 2>/dev/null | grep -cE 'libcuda|libnvidia') beside it"
note "cdi: $(ls /etc/cdi /var/run/cdi 2>/dev/null | tr '\n' ' ')"
cloud_up
arcus describe node gpuhost 2>&1 | sed 's/^/# /'
arcus gpus 2>&1 | sed 's/^/# /'
read -ra want <<<"${WANT:---gpus 1 --cpus $(some 4 0.5) --memory ${MEMORY:-32GB}}"

# --- what is seen
bare=$(nvidia-smi -L)
inside=$(run "${want[@]}" -- nvidia-smi -L)
is "nvidia-smi -L in a task shows its GPU as the host does" "${inside:-$(cat "$BASE/err")}" "$(head -n 1 <<<"$bare")"
like "... under its UUID, with numbers from 0" "$(run "${want[@]}" -- sh -c 'echo "$CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"')" '^0 GPU-[0-9a-f-]+$'
like "its nodes are the GPU's and the driver's own" "$(run "${want[@]}" -- sh -c 'ls /dev | grep nvidia | tr "\n" " "')" '^nvidia-uvm (nvidia-uvm-tools )?nvidia[0-9]+ nvidiactl $'
product='import torch
a = torch.randn(512, 512, device="cuda", dtype=torch.float32); b = torch.eye(512, device="cuda")
print(torch.cuda.device_count(), torch.allclose(a @ b, a, atol=1e-3))'
is "PyTorch multiplies a matrix there" "$(run "${want[@]}" -- "$PY" -c "$product")" "1 True"
is "a task without a GPU sees none" "$(run -- sh -c 'nvidia-smi -L >/dev/null 2>&1 && echo smi; ls /dev | grep nvidia; ls /proc/driver/nvidia 2>/dev/null; "$0" -c "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"' "$PY")" "False 0"

note "bare, with /proc/driver/nvidia/gpus covered: $(unshare --mount sh -c 'mount -t tmpfs x /proc/driver/nvidia/gpus && nvidia-smi -L' 2>&1 | head -n 1)"
note "bare, with /proc/driver/nvidia covered: $(unshare --mount sh -c 'mount -t tmpfs x /proc/driver/nvidia && nvidia-smi -L && "$0" -c "import torch; print(torch.ones(3, device=\"cuda\").sum().item())"' "$PY" 2>&1 | tail -n 2 | tr '\n' ' ')"
is "/proc tells a task nothing of the GPUs of the node" "$(run "${want[@]}" -- sh -c 'ls /proc/driver/nvidia/gpus')" ""

# --- what is forbidden. The node of the GPU itself is put into the roots of two tasks, on a file system on which devices count.
plant() { # plant JOB NODE: /mnt/planted of its task
    local attempt procs p
    attempt=$(attempts "$1" "d['items'][-1]['id']")
    procs=$(procs_of "$attempt")
    for p in $(cat "$procs"); do
        grep -qsE '^NSpid:.*[[:space:]]1$' "/proc/$p/status" || continue
        nsenter -t "$p" -m sh -c "umask 0; mount -t tmpfs -o mode=755 planted /mnt && mknod /mnt/planted c $((0x$(stat -c %t "$2"))) $((0x$(stat -c %T "$2"))) && echo >/mnt/done"
    done
}
open_it='while [ ! -e /mnt/done ]; do sleep 0.1; done; python3 -c "
import os
try: os.open(\"/mnt/planted\", os.O_RDWR); print(\"opened\")
except OSError as e: print(e.errno)"'
try_planted() { # try_planted NODE FLAGS...: opened, or the error's number
    local dev=$1 job
    shift
    job=$(start "$@" -- sh -c "$open_it")
    until_ok 60 state_is "$job" running
    plant "$job" "$dev" 2>&1 | sed 's/^/# /' >&2
    until_ok 60 has_said "$job" .
    said "$job"
}
gpu_node=${GPU_NODE:-$(ls /dev/nvidia[0-9]* | head -n 1)}
is "the GPU's node, put into the root of a task that has leased it, opens: the check can fail" "$(try_planted "$gpu_node" "${want[@]}")" "opened"
is "put into the root of a task that has not, it is EPERM" "$(try_planted "$gpu_node")" "1"
is "... and so is nvidiactl" "$(try_planted /dev/nvidiactl)" "1"

# --- an image without any driver: the libraries come from the node
cat >"$BASE/image.py" <<'PY'
# An OCI layout of what a shell needs, and stand-ins for skopeo and umoci that unpack it.
import hashlib, io, json, os, re, subprocess, sys, tarfile
def blob(top, data):
    d = hashlib.sha256(data).hexdigest(); open(f"{top}/blobs/sha256/{d}", "wb").write(data); return {"digest": "sha256:" + d, "size": len(data)}
top, out = sys.argv[1], sys.argv[2]
os.makedirs(top + "/blobs/sha256")
need = {"/bin/sh": "/bin/sh"}
for tool in ("ls", "cat", "sleep", "grep", "readlink"): need["/bin/" + tool] = subprocess.getoutput("command -v " + tool)
for f in list(need.values()):
    for l in subprocess.getoutput("ldd " + f).splitlines():
        m = re.search(r"(/\S+) \(0x", l)
        if m: need[m.group(1)] = m.group(1)
for l in ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"):
    for d in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/lib/aarch64-linux-gnu"):
        if os.path.exists(f"{d}/{l}"): need[f"{d}/{l}"] = f"{d}/{l}"; break
raw = io.BytesIO()
with tarfile.open(fileobj=raw, mode="w") as t:
    for d in ("proc", "sys", "dev", "tmp", "etc", "usr", "usr/local"):
        i = tarfile.TarInfo(d); i.type = tarfile.DIRTYPE; i.mode = 0o755; t.addfile(i)
    for name, path in need.items():
        data = open(os.path.realpath(path), "rb").read(); i = tarfile.TarInfo(name.lstrip("/")); i.size = len(data); i.mode = 0o755; t.addfile(i, io.BytesIO(data))
layer = raw.getvalue()
config = blob(top, json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode())
l = blob(top, layer)
kind = "application/vnd.oci.image."
m = blob(top, json.dumps({"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": {"mediaType": kind + "config.v1+json", **config}, "layers": [{"mediaType": kind + "layer.v1.tar", **l}]}).encode())
json.dump({"schemaVersion": 2, "manifests": [{"mediaType": kind + "manifest.v1+json", **m, "annotations": {"org.opencontainers.image.ref.name": "image"}}]}, open(top + "/index.json", "w"))
json.dump({"imageLayoutVersion": "1.0.0"}, open(top + "/oci-layout", "w"))
with tarfile.open(out, "w") as t: t.add(top, ".")
PY
{ echo "#!$(command -v python3)"; cat <<'PY'; } >"$BASE/skopeo"
import re, sys, tarfile
src = [a for a in sys.argv if a.startswith("oci-archive:")]; to = [a for a in sys.argv if a.startswith("oci:")]
if not src or not to: sys.exit(1)
tarfile.open(src[0].split(":")[1]).extractall(to[0].split(":")[1])
PY
{ echo "#!$(command -v python3)"; cat <<'PY'; } >"$BASE/umoci"
import json, sys, tarfile
layout, root = sys.argv[sys.argv.index("--image") + 1].rsplit(":", 1)[0], sys.argv[-1]
b = lambda d: layout + "/blobs/" + d["digest"].replace(":", "/")
m = json.load(open(b(json.load(open(layout + "/index.json"))["manifests"][0])))
for l in m["layers"]: tarfile.open(b(l)).extractall(root)
PY
chmod 755 "$BASE/skopeo" "$BASE/umoci"
mkdir "$BASE/over" && mount -t tmpfs over "$BASE/over" && mkdir "$BASE/over/up" "$BASE/over/work" && cp "$BASE/skopeo" "$BASE/umoci" "$BASE/over/up/"
if { [ ! -x /usr/bin/skopeo ] || [ -n "${STAND_INS:-}" ]; } && mount -t overlay overlay -o "lowerdir=/usr/bin,upperdir=$BASE/over/up,workdir=$BASE/over/work" /usr/bin 2>"$BASE/err"; then
    # the agent lives in the same mount namespace, so it sees them from now on
    python3 "$BASE/image.py" "$BASE/layout" "$BASE/image.tar" && arcus image import "$BASE/image.tar" --name bare:1 >/dev/null 2>"$BASE/err"
    is "in an image without a driver nvidia-smi finds the node's libraries" "$(run --image bare:1 "${want[@]}" -- nvidia-smi -L)" "$(head -n 1 <<<"$bare")"
    note "$(head -c 500 "$BASE/err")"
    like "... which lie in one folder, read-only" "$(run --image bare:1 "${want[@]}" -- sh -c 'echo $LD_LIBRARY_PATH; ls /usr/local/nvidia/lib64 | grep -c . ; (echo x >/usr/local/nvidia/x) 2>/dev/null || echo closed; [ -s /usr/local/nvidia/lib64/libcuda.so.1 ] && echo there')" $'^/usr/local/nvidia/lib64\n[0-9]+\nclosed\nthere$'
    is "... and not for who has no GPU" "$(run --image bare:1 -- sh -c 'ls /usr/local/nvidia 2>/dev/null; echo "[$LD_LIBRARY_PATH]"')" "[]"
else
    skip "in an image without a driver nvidia-smi finds the node's libraries" "no overlay over /usr/bin: $(head -c 200 "$BASE/err")"
fi

# --- what a start costs more
"$PY" - "$ARCUS" "$(arcus images 2>/dev/null | grep -c bare:1)" <<'PY' | sed 's/^/# /'
import statistics, subprocess, sys, time
arcus, image = sys.argv[1], int(sys.argv[2])
shapes = [("image: host", []), ("image: host, 1 GPU", ["--gpus", "1"])]
if image: shapes += [("an image", ["--image", "bare:1"]), ("an image, 1 GPU and the driver's files", ["--image", "bare:1", "--gpus", "1"])]
took = {name: [] for name, _ in shapes}
for i in range(12):
    for name, flags in shapes:
        t = time.perf_counter(); subprocess.run([arcus, "run", *flags, "--", "sh", "-c", ":"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if i > 1: took[name].append((time.perf_counter() - t) * 1e3)
print("| arcus run of nothing, ms | median | least |\n|---|---|---|")
for name, _ in shapes: print(f"| {name} | {statistics.median(took[name]):.1f} | {min(took[name]):.1f} |")
PY

# --- how fast
bench='import time, torch
n = 8192; a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16); b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16); c = torch.empty_like(a)
def once(k):
    torch.cuda.synchronize(); t = time.perf_counter()
    for _ in range(k): torch.matmul(a, b, out=c)
    torch.cuda.synchronize(); return time.perf_counter() - t
once(200)
print("TFLOPS %.2f" % max(2 * n ** 3 * 200 / once(200) / 1e12 for _ in range(5)))'
: >"$BASE/table"
for i in $(seq "$PAIRS"); do
    echo "bare $("$PY" -c "$bench" 2>&1 | grep TFLOPS) $("$PY" "$BASE/in/init.py" 2>&1 | grep INIT)"
    echo "task $(run "${want[@]}" -- "$PY" -c "$bench" | grep TFLOPS) $(run "${want[@]}" -- "$PY" "$BASE/in/init.py" | grep INIT)"
done | tee "$BASE/table" | sed 's/^/# /'
python3 - "$BASE/table" <<'PY' >"$BASE/result"
import statistics, sys
rows = [l.split() for l in open(sys.argv[1])]
rows = [r for r in rows if len(r) == 6]
def col(who, i): return [float(r[i]) for r in rows if r[0] == who]
if not col("bare", 2) or not col("task", 2): print("0 0 0 no figures"); sys.exit()
ratios = [t / b for t, b in zip(col("task", 2), col("bare", 2))]
m = statistics.median
init_b = m([a + b for a, b in zip(col("bare", 4), col("bare", 5))]); init_t = m([a + b for a, b in zip(col("task", 4), col("task", 5))])
print(f"{m(ratios) * 100:.2f} {init_b:.1f} {init_t:.1f}")
print(f"|  | bare | task | ratio |\n|---|---|---|---|\n| bf16 matrix product 8192, TFLOP/s (median of {len(ratios)} pairs) | {m(col('bare', 2)):.1f} | {m(col('task', 2)):.1f} | {m(ratios) * 100:.2f} % |")
print(f"| cuInit, ms | {m(col('bare', 4)):.1f} | {m(col('task', 4)):.1f} | |\n| first context, ms | {m(col('bare', 5)):.1f} | {m(col('task', 5)):.1f} | |")
PY
read -r ratio init_bare init_task _ <"$BASE/result"
sed -n '2,$p' "$BASE/result" | sed 's/^/# /'
if python3 -c "exit(not $ratio >= 99.5)"; then pass "a bf16 matrix product in a task is 99.5 % of bare metal or more ($ratio %)"; else fail "a bf16 matrix product in a task is 99.5 % of bare metal or more" "$ratio %" "99.5"; fi
if python3 -c "exit(not 0 < $init_task <= $init_bare * 1.05 + 10)"; then pass "CUDA starts as fast in a task ($init_bare ms bare, $init_task ms in a task)"; else fail "CUDA starts as fast in a task" "$init_task ms" "at most 5 % and 10 ms over $init_bare ms"; fi
