#!/usr/bin/env bash
# mps.sh - on a host with an NVIDIA GPU and its MPS: four tasks share it by quarters. Does each get its part, can one take more, and what does a neighbour feel? Starts
# a cloud of its own from the bundle, prints TAP and a table; no mode of the card is touched. Needs root, python3 with PyTorch (PY=...), and `arcus`
# with its crun beside it in PATH (or ARCUS=...). About 6 minutes.
#   SECONDS_EACH=10 tests/gpu/mps.sh
set -uo pipefail
: "${ARCUS:=$(command -v arcus)}" "${SECONDS_EACH:=10}"
[ -x "$ARCUS" ] || { echo "Bail out! no arcus: set ARCUS or PATH"; exit 1; }
[ "$(id -u)" = 0 ] || { echo "Bail out! needs root"; exit 1; }
ARCUS=$(readlink -f "$ARCUS")
PY=${PY:-$(command -v python3)}
for p in "$PY" /opt/torch/.venv/bin/python3; do "$p" -c 'import torch' 2>/dev/null && PY=$p && break; done
"$PY" -c 'import torch' || { echo "Bail out! $PY has no PyTorch: set PY"; exit 1; }
BASE=$(mktemp -d /opt/arcus-mps.XXXXXX) && chmod 755 "$BASE" || exit 1
export ARCUS_CONFIG=$BASE/config HOME=$BASE
count=0 bad=0 UP=''
pass() { count=$((count + 1)); echo "ok $count - $1"; }
fail() { count=$((count + 1)) bad=$((bad + 1)); echo "not ok $count - $1"; printf '%s\n' "got: $2" "wanted: $3" | head -c 3000 | sed 's/^/#   /'; }
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2" "$3"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "$2" "something like /$3/"; fi; }
true_that() { if python3 -c "exit(not ($2))" 2>/dev/null; then pass "$1 ($2)"; else fail "$1" "$2" "true"; fi; }
note() { printf '%s\n' "$*" | sed 's/^/# /'; }
until_ok() { local end=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done; }
leave() {
    trap - EXIT
    [ -n "$UP" ] && { kill "$UP" 2>/dev/null; wait "$UP" 2>/dev/null; }
    for p in $(pgrep -f "^$BASE/run/bin/arcus-task "); do kill "$p" 2>/dev/null; done
    for f in "$BASE"/run/mps/*/daemon; do [ -e "$f" ] && kill "$(cut -d' ' -f1 "$f")" 2>/dev/null; done
    sleep 1
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$BASE" 2>/dev/null
    echo "1..$count"
    exit $((bad > 0))
}
trap leave EXIT
trap 'exit 1' INT TERM
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)" 2>/dev/null; }

mode_before=$(nvidia-smi --query-gpu=compute_mode --format=csv,noheader | head -n 1)
note "host: $(uname -r), $(nvidia-smi --query-gpu=name,driver_version,uuid,compute_mode --format=csv,noheader | head -n 1)"
"$ARCUS" up --data "$BASE/data" --run "$BASE/run" --listen 127.0.0.1:0 --name gpuhost --sim-gpus 0 >"$BASE/log" 2>&1 </dev/null &
UP=$!
until_ok 30 test -s "$BASE/data/address" || { tail -n 20 "$BASE/log" | sed 's/^/# /'; echo "Bail out! the cloud does not start"; exit 1; }
"$ARCUS" config set gpu --server "$(cat "$BASE/data/address")" --key-file "$BASE/data/admin.key" >/dev/null
arcus() { "$ARCUS" "$@"; }
tried() { arcus describe node gpuhost | grep -qE 'crun|runc'; }
has_gpu() { arcus gpus | grep -qiE 'nvidia|h200|h100|a100'; }
until_ok 60 tried
until_ok 30 has_gpu || { fail "the node offers its GPU" "$(arcus gpus 2>&1; tail -n 20 "$BASE/log")" "a GPU"; exit 1; }
pass "the cloud is up"
note "$(arcus describe node gpuhost | grep -A 5 cannot)"

# --- programs that tasks run
mkdir -p "$BASE/in" && chmod 755 "$BASE/in"
cat >"$BASE/in/bench.py" <<'PY'
# bench.py BEGIN SECONDS [greedy]: a bf16 matrix product, from BEGIN on; TFLOP/s, SMs, free MiB
import sys, time, torch
n = 8192; a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16); b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16); c = torch.empty_like(a)
begin, length, deep = float(sys.argv[1]), float(sys.argv[2]), 64 if "greedy" in sys.argv else 8
torch.matmul(a, b, out=c); torch.cuda.synchronize()
while time.time() < begin: torch.matmul(a, b, out=c); torch.cuda.synchronize()
k = 0; t = time.time()
while time.time() - t < length:
    for _ in range(deep): torch.matmul(a, b, out=c)
    torch.cuda.synchronize(); k += deep
print("TFLOPS %.2f %d %d" % (2 * n ** 3 * k / (time.time() - t) / 1e12, torch.cuda.get_device_properties(0).multi_processor_count, torch.cuda.mem_get_info()[0] >> 20), flush=True)
PY
cat >"$BASE/in/band.py" <<'PY'
# band.py BEGIN SECONDS: copies in the GPU's memory; GB/s
import sys, time, torch
a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda"); b = torch.empty_like(a); begin, length = map(float, sys.argv[1:3])
b.copy_(a); torch.cuda.synchronize()
while time.time() < begin: time.sleep(0.01)
k = 0; t = time.time()
while time.time() - t < length:
    for _ in range(8): b.copy_(a)
    torch.cuda.synchronize(); k += 8
print("GBPS %.1f" % (2 * k * (1 << 30) / (time.time() - t) / 1e9), flush=True)
PY
cat >"$BASE/in/hold.py" <<'PY'
# hold.py MIB... : takes so much piece by piece, and holds what it got
import ctypes, sys, time
c = ctypes.CDLL("libcuda.so.1"); P = ctypes.byref; d = ctypes.c_int(); x = ctypes.c_void_p(); f = ctypes.c_size_t(); t = ctypes.c_size_t()
assert c.cuInit(0) == 0 and c.cuDeviceGet(P(d), 0) == 0 and c.cuDevicePrimaryCtxRetain(P(x), d) == 0 and c.cuCtxSetCurrent(x) == 0
c.cuMemGetInfo_v2(P(f), P(t)); print("free", f.value >> 20, flush=True)
for m in map(int, sys.argv[1:]):
    p = ctypes.c_uint64(); print("took" if c.cuMemAlloc_v2(P(p), ctypes.c_size_t(m << 20)) == 0 else "refused", m, time.time(), flush=True)
while True: time.sleep(1)
PY
cat >"$BASE/in/spin.py" <<'PY'
# spin.py SECONDS [bad|long]: short kernels one after the other; one that writes where it may not; one that takes ten seconds
import ctypes, sys, time
c = ctypes.CDLL("libcuda.so.1"); P = ctypes.byref; d = ctypes.c_int(); x = ctypes.c_void_p(); m = ctypes.c_void_p()
assert c.cuInit(0) == 0 and c.cuDeviceGet(P(d), 0) == 0 and c.cuDevicePrimaryCtxRetain(P(x), d) == 0 and c.cuCtxSetCurrent(x) == 0
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 n) { .reg .u64 a,b,c,m; .reg .pred p; ld.param.u64 m,[n]; mov.u64 a,%clock64; L: mov.u64 b,%clock64; sub.u64 c,b,a; setp.lt.u64 p,c,m; @p bra L; ret; }
.visible .entry bad() { .reg .u64 a; mov.u64 a,16; st.global.u32 [a],7; ret; }
"""
assert c.cuModuleLoadData(P(m), PTX) == 0
def kernel(name, clocks=None):
    k = ctypes.c_void_p(); assert c.cuModuleGetFunction(P(k), m, name) == 0
    v = ctypes.c_uint64(clocks or 0); a = (ctypes.c_void_p * 1)(ctypes.cast(P(v), ctypes.c_void_p)) if clocks else None
    return c.cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, None, a, None)
print("begins", time.time(), flush=True)
if "bad" in sys.argv: time.sleep(1); print("bad", kernel(b"bad"), c.cuCtxSynchronize(), time.time(), flush=True); sys.exit(0)
if "long" in sys.argv: kernel(b"spin", 18_000_000_000); print("in kernel", flush=True); c.cuCtxSynchronize(); sys.exit(0)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    rc = kernel(b"spin", 100_000_000) or c.cuCtxSynchronize()
    if rc: print("failed", rc, time.time(), flush=True); sys.exit(7)
print("well", time.time(), flush=True)
PY
chmod 644 "$BASE"/in/*

read -ra quarter <<<"--gpus 0.25 --cpus 2 --memory 16GB"
read -ra whole <<<"--gpus 1 --cpus 4 --memory 32GB"
run() { timeout 300 "$ARCUS" run "$@" 2>"$BASE/err" </dev/null || echo "exit code $?: $(tail -n 3 "$BASE/err" | tr '\n' ' ')"; }
start() { arcus submit "$@" 2>"$BASE/err" | grep -oE 'job-[0-9a-z]+' | head -n 1; }     # start FLAGS -- COMMAND: the job
field() { arcus describe job "$1" -o json | json "$2"; }
over() { field "$1" "d['state']" | grep -qE 'done|failed|cancelled'; }
said() { arcus logs "$1" 2>/dev/null; }
soon() { python3 -c "import time; print(time.time() + $1)"; }
figure() { grep -oE "$1 [0-9.]+" | head -n 1 | cut -d' ' -f2; }

# --- its part of the compute
exclusive=$(run "${whole[@]}" -- "$PY" "$BASE/in/bench.py" "$(soon 12)" "$SECONDS_EACH" | figure TFLOPS)
note "the whole GPU in one task: $exclusive TFLOP/s"
alone=$(run "${quarter[@]}" -- "$PY" "$BASE/in/bench.py" "$(soon 12)" "$SECONDS_EACH")
like "a quarter sees a quarter of the multiprocessors and of the memory" "$alone" 'TFLOPS [0-9.]+ 3[0-9] 3[0-9]{4}'
four() { # four PROGRAM NAME WORDS-OF-THE-THREE: figures of four at once
    local t job jobs=() i
    t=$(soon 25)
    for i in 0 1 2 3; do
        if [ "$i" = 0 ]; then job=$(start "${quarter[@]}" -- "$PY" "$BASE/in/$1" "$t" "$SECONDS_EACH"); else job=$(start "${quarter[@]}" -- "$PY" "$BASE/in/$1" "$t" "$SECONDS_EACH" $3); fi
        jobs+=("$job")
    done
    for job in "${jobs[@]}"; do until_ok 120 over "$job"; said "$job" | figure "$2"; done | tr '\n' ' '
}
polite=$(four bench.py TFLOPS '')
busy=$(four bench.py TFLOPS greedy)
band=$(four band.py GBPS '')
cat <<TABLE | sed 's/^/# /'
| bf16 matrix product, TFLOP/s | |
|---|---|
| the whole GPU, one task | $exclusive |
| a quarter, alone | $(figure TFLOPS <<<"$alone") |
| four quarters at once | $polite |
| the first polite, three greedy | $busy |
| copies in memory, four at once, GB/s (not promised) | $band |
TABLE
python3 - "$exclusive" "$polite" "$busy" <<'PY' >"$BASE/sum"
import sys
e = float(sys.argv[1]); p = [float(x) for x in sys.argv[2].split()]; b = [float(x) for x in sys.argv[3].split()]
s = sum(p) or 1
print(len(p), max(abs(100 * x / s - 25) for x in p) if p else 99, round(100 * s / e, 2), round(100 * b[0] / p[0], 2) if p and b else 0)
PY
read -r n off sum kept <"$BASE/sum"
true_that "each of four has a quarter of the aggregate, within 3 points" "$n == 4 and $off <= 3"
true_that "together they have 97 % of the whole or more" "$sum >= 97"
true_that "one keeps 97 % of it beside three that are greedy" "$kept >= 97"

# --- its part of the memory
share=$(arcus gpus -o json | json "d['items'][0]['memory_mib'] // 4")
job=$(start "${quarter[@]}" -- "$PY" "$BASE/in/hold.py" $(for i in $(seq 40); do echo 1000; done))
holds() { said "$1" | grep -q "$2"; }
until_ok 60 holds "$job" refused
sleep 2
got=$(($(said "$job" | grep -c '^took') * 1000)) free=$(said "$job" | figure free)
note "promised $share MiB; it sees $free free, and got $got in pieces of 1000"
true_that "the promise is exact: all but what the driver keeps with a process can be had, and no more" "$share - 400 <= $free <= $share and $free - 1000 < $got <= $free"
is "who holds all of his share is left alone" "$(field "$job" "d['state']")" running
arcus cancel "$job" >/dev/null
job=$(start "${quarter[@]}" -- sh -c '"$0" "$1" 20000 & "$0" "$1" 20000 & wait' "$PY" "$BASE/in/hold.py")
until_ok 60 over "$job"
like "two processes that hold more together are ended, with that as the reason" "$(field "$job" "d['attempts'][0]['outcome'] + ' ' + d['attempts'][0]['detail']")" 'out_of_memory .*held 4[0-9]{4} MiB'
at=$(said "$job" | grep '^took' | cut -d' ' -f3 | sort | tail -n 1)
note "from the second's memory to its end: $(field "$job" "d['attempts'][0]['ended']") (taken at $(date -u -d "@$at" +%T.%3N))"

# --- asking for more
wide() { run "${quarter[@]}" --env "$1" ${2:+--env "$2"} -- "$PY" "$BASE/in/bench.py" "$(soon 8)" 3; }
base=$(figure TFLOPS <<<"$alone")
for words in 'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100' 'CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING=1' 'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=120G' 'CUDA_MPS_CLIENT_PRIORITY=0' 'CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING=1 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100'; do
    out=$(wide $words)
    note "$words: $out"
    true_that "$words does not widen it" "0 < $(figure TFLOPS <<<"$out") <= $base * 1.05 and $(cut -d' ' -f4 <<<"$out") <= $share"
done
job=$(start "${quarter[@]}" --env CUDA_MPS_PIPE_DIRECTORY=/nowhere -- "$PY" "$BASE/in/hold.py" 500)
until_ok 30 over "$job"
like "one that goes around MPS is ended, with that as the reason" "$(field "$job" "d['attempts'][0]['outcome'] + ' ' + d['attempts'][0]['detail']")" 'around MPS'

# --- words to the daemon
keeps=$(start "${quarter[@]}" -- "$PY" "$BASE/in/spin.py" 20)
until_ok 30 holds "$keeps" begins
for words in quit 'set_default_active_thread_percentage 100' 'set_default_device_pinned_mem_limit 0 100G' 'start_server -uid 0'; do
    like "a task's '$words' is refused" "$(run "${quarter[@]}" -- sh -c 'echo "$0" | nvidia-cuda-mps-control 2>&1; ls /tmp/nvidia-mps' "$words")" '([Pp]rivilege).*control$'
done
like "the daemon still divides as before" "$(run "${quarter[@]}" -- sh -c 'echo get_default_active_thread_percentage | nvidia-cuda-mps-control')" '25.0'
until_ok 60 over "$keeps"
like "and its neighbour has felt nothing" "$(said "$keeps")" well

# --- neighbours of one that dies: whatever it did to them, they are told, and tried again
feel() { # feel NAME COMMAND-THAT-HURTS SPIN-WORD
    local a b
    a=$(start "${quarter[@]}" -- "$PY" "$BASE/in/spin.py" 12)
    until_ok 30 holds "$a" begins
    b=$(start "${quarter[@]}" -- "$PY" "$BASE/in/spin.py" 12 "$3")
    until_ok 30 holds "$b" "$4"
    eval "$2"
    until_ok 90 over "$a"
    note "$1: the neighbour said: $(said "$a" | tr '\n' ' '); its attempts: $(field "$a" "[(x['outcome'], x['detail']) for x in d['attempts']]")"
    like "$1: the neighbour ends well, at once or when it is tried again" "$(field "$a" "d['state']") $(said "$a" | tail -n 1)" '^done well'
    arcus cancel "$b" >/dev/null 2>&1
}
feel "a task that is cancelled in mid-kernel" 'arcus cancel "$b" >/dev/null' long 'in kernel'
feel "a task that kills itself in mid-kernel" 'arcus exec "$b" -- sh -c "kill -9 \$(pgrep -f spin.py)" </dev/null >/dev/null 2>&1' long 'in kernel'
feel "a task that writes where it may not" true bad bad

# --- afterwards
none() { ! pgrep -f 'nvidia-cuda-mps-(control|server)'; }
for j in $(arcus ps 2>/dev/null | grep -oE 'job-[0-9a-z]+'); do arcus cancel "$j" >/dev/null 2>&1; done
if until_ok 60 none; then pass "with the last share its daemon has left"; else fail "with the last share its daemon has left" "$(pgrep -a -f nvidia-cuda-mps)" "nobody"; fi
is "the mode of the card was left alone" "$(nvidia-smi --query-gpu=compute_mode --format=csv,noheader | head -n 1)" "$mode_before"
note "what the daemons said: $(tail -n 30 "$BASE"/run/mps/*/log/daemon 2>/dev/null)"
