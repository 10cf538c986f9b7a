#!/usr/bin/env bash
# hostile.sh - on a host with an NVIDIA GPU: the check helper on a real device, and tenants who want what a neighbour left or has on it. Starts a cloud of its own
# from the bundle, prints TAP; no mode of the card is touched. Needs root, python3 (PY=...; no PyTorch), and `arcus` with its crun beside it in PATH (or ARCUS=...). Two minutes.
#   tests/gpu/hostile.sh
set -uo pipefail
: "${ARCUS:=$(command -v arcus)}"
[ -x "$ARCUS" ] || { echo "Bail out! no arcus: set ARCUS or PATH"; exit 1; }
[ "$(id -u)" = 0 ] || { echo "Bail out! needs root"; exit 1; }
ARCUS=$(readlink -f "$ARCUS") PY=${PY:-$(command -v python3)}
BASE=$(mktemp -d /opt/arcus-hostile.XXXXXX) && chmod 755 "$BASE" || exit 1
export ARCUS_CONFIG=$BASE/config HOME=$BASE
count=0 bad=0 UP=''
pass() { count=$((count + 1)); echo "ok $count - $1"; }
fail() { count=$((count + 1)) bad=$((bad + 1)); echo "not ok $count - $1"; printf '%s\n' "got: $2" "wanted: $3" | head -c 3000 | sed 's/^/#   /'; }
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2" "$3"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "$2" "something like /$3/"; fi; }
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
UUID=$(nvidia-smi --query-gpu=uuid --format=csv,noheader | head -n 1)
note "host: $(uname -r), $(nvidia-smi --query-gpu=name,driver_version,uuid,compute_mode --format=csv,noheader | head -n 1)"

# --- the helper itself: kernels that only an assembler has seen so far
check() { timeout 120 "$ARCUS" gpu-check --do "$1" --uuid "$UUID" "${@:2}" 2>&1; }
for i in 1 2 3; do note "test: $(check test)"; note "scrub: $(check scrub)"; done
like "a good GPU passes its test: patterns over all of its memory, and matrix products" "$(check test)" '^\{"ok":true,"mib":[1-9][0-9]{4,}'
like "... and all that is free of its memory can be overwritten" "$(check scrub)" '^\{"ok":true,"mib":[1-9][0-9]{4,}'
like "a GPU that is not there is told" "$(check test --uuid GPU-00000000-0000-0000-0000-000000000000)" '"ok":false'

# --- a program that needs nothing but libcuda: what of the memory that it gets has the pattern in it, or holds it
mkdir "$BASE/in" && chmod 755 "$BASE/in"
cat >"$BASE/in/mem.py" <<'EOF2'
# mem.py write|read|hold MIB [PROCESSES]: takes memory in pieces of 64 MiB, as much as it gets up to MIB
import ctypes as c, os, sys, time
what, most = sys.argv[1], int(sys.argv[2])
for _ in range(int(sys.argv[3]) - 1 if len(sys.argv) > 3 else 0):
    if os.fork() == 0: break
cu = c.CDLL("libcuda.so.1"); ctx = c.c_void_p(); dev = c.c_int()
def do(rc, what):
    if rc: print(what, "failed", rc, flush=True); sys.exit(3)
do(cu.cuInit(0), "init"); do(cu.cuDeviceGet(c.byref(dev), 0), "device"); do(cu.cuDevicePrimaryCtxRetain(c.byref(ctx), dev), "context"); do(cu.cuCtxSetCurrent(ctx), "context")
piece, got, found, host = 64 << 20, 0, 0, (c.c_uint32 * (1 << 20))()
while got < most << 20:
    p = c.c_uint64()
    if cu.cuMemAlloc_v2(c.byref(p), c.c_size_t(piece)): break
    got += piece
    if what == "read":
        for at in range(0, piece, c.sizeof(host) * 4):
            do(cu.cuMemcpyDtoH_v2(host, c.c_uint64(p.value + at), c.c_size_t(c.sizeof(host))), "read")
            found += bytes(host).count(b"\x5a\xa5\x0f\xf0")
    else:
        do(cu.cuMemsetD32_v2(p, 0xf00fa55a, c.c_size_t(piece // 4)), "write")
do(cu.cuCtxSynchronize(), "sync")
print(what, got >> 20, "MiB", found, "found", flush=True)
if what == "hold": time.sleep(120)
EOF2
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
MEM=$(base64 -w0 "$BASE/in/mem.py")
program() { printf 'echo %s | base64 -d >/tmp/mem.py; exec %s /tmp/mem.py %s' "$MEM" "$PY" "$*"; }
run() { timeout 300 "$ARCUS" run --cpus 4 --memory 16GB "$@" 2>"$BASE/err" </dev/null || note "exit code $?: $(tail -n 5 "$BASE/err")" >&2; }

# --- what a neighbour left
arcus projects create other >/dev/null
ALL=120000
like "a tenant fills the GPU with its pattern and ends" "$(run --gpus 1 -- sh -c "$(program write $ALL)")" '^write 1[0-9]{5} MiB'
note "the same project, without a scrub, finds: $(run --gpus 1 -- sh -c "$(program read $ALL)") (0 where the driver clears memory itself)"
run --gpus 1 -- sh -c "$(program write $ALL)" >/dev/null
like "refused: another project reads nothing of it" "$(run --project other --gpus 1 -- sh -c "$(program read $ALL)")" '^read 1[0-9]{5} MiB 0 found'
like "... because it was overwritten, which is an event" "$(arcus events --limit 1000 -o json 2>/dev/null | grep -a gpu.scrubbed)" '[0-9]{5} of [0-9]+ MiB overwritten in [0-9]+ ms'
note "$(arcus events --limit 1000 -o json 2>/dev/null | grep -aoE '[0-9]+ of [0-9]+ MiB overwritten in [0-9]+ ms')"

# --- more than one's share, by every way in
share() { # share NAME SCRIPT: a quarter; how it ended
    local id
    id=$(arcus submit --name "$1" --gpus 0.25 --cpus 2 --memory 8GB -o json -- sh -c "$2" 2>"$BASE/err" | json "d['id']")
    ended() { arcus describe "$id" -o json | json "d['state']" | grep -qE 'failed|done|cancelled'; }
    running() { arcus describe "$id" -o json | json "d['state']" | grep -q running; }
    if [ -n "${3:-}" ]; then until_ok 60 running; eval "$3"; fi
    until_ok 120 ended || arcus cancel "$id" >/dev/null
    arcus describe "$id" -o json | json "str(d['outcome']) + ' ' + str(d.get('detail', ''))"
}
QUARTER=30000
note "one process: $(share one "$(program hold 100000)" 'sleep 10; arcus cancel "$id" >/dev/null')"
over='out_of_memory .*of the GPU.s memory together'
like "refused: more than its part in several processes (fork)" "$(share fork "$(program hold $QUARTER 3)")" "$over"
like "refused: ... by exec" "$(share exec "$(program hold $QUARTER)" 'for i in 1 2; do arcus exec "$id" -- sh -c "$(program hold $QUARTER)" </dev/null >/dev/null 2>&1 & done')" "$over"
like "refused: ... with another environment, around MPS" "$(share environ "export CUDA_MPS_PIPE_DIRECTORY=/nonexistent; $(program hold 100000)")" 'out_of_memory|signaled .*around MPS'
like "refused: ... in a namespace of its own (none can be made)" "$(share nested "unshare -Ur true 2>/dev/null && echo made; $(program hold $QUARTER 3)")" "$over"
if command -v gcc >/dev/null && printf 'int main(void){return 0;}' >"$BASE/s.c" && gcc -static -o "$BASE/s" "$BASE/s.c" 2>/dev/null; then
    note "static binaries: gcc is here; a static program reaches the driver by ioctl alone, and is counted by its control group like any other"
fi

# --- a process that dies in mid-kernel beside a neighbour
like "a neighbour that is killed in the middle of its work hurts nobody" "$(share victim "echo $MEM | base64 -d >/tmp/mem.py; $PY /tmp/mem.py hold 4000 & sleep 3; kill -9 \$!; wait; sleep 1; $PY /tmp/mem.py write 4000")" '^succeeded'
leave
