#!/usr/bin/env bash
# suspend.sh - on a host with an NVIDIA GPU and no packages: which tasks can be suspended and resumed, are they intact, and what does Arcus add to the
# driver's own calls? Tasks run in the full bundle (user, pid, network namespaces, seccomp). Starts a cloud of its own from the bundle, prints TAP and a
# table. Needs root, python3 with PyTorch, and `arcus` with its crun beside it in PATH (or ARCUS=...).
#   PAIRS=10 GIB=8 tests/gpu/suspend.sh
set -uo pipefail
: "${ARCUS:=$(command -v arcus)}" "${PAIRS:=10}" "${GIB:=8}" "${MOST_MS:=150}"
[ -x "$ARCUS" ] || { echo "Bail out! no arcus: set ARCUS or PATH"; exit 1; }
[ "$(id -u)" = 0 ] || { echo "Bail out! needs root"; exit 1; }
ARCUS=$(readlink -f "$ARCUS")
PY=${PY:-$(command -v python3)}
"$PY" -c 'import torch' || { echo "Bail out! $PY has no PyTorch: set PY"; exit 1; }
BASE=$(mktemp -d /opt/arcus-suspend.XXXXXX) && chmod 755 "$BASE" || exit 1
export ARCUS_CONFIG=$BASE/config HOME=$BASE
count=0 bad=0 UP=''
pass() { count=$((count + 1)); echo "ok $count - $1"; }
fail() { count=$((count + 1)) bad=$((bad + 1)); echo "not ok $count - $1"; printf '%s\n' "got: $2" "wanted: $3" | head -c 3000 | sed 's/^/#   /'; }
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2" "$3"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "$2" "something like /$3/"; fi; }
note() { printf '%s\n' "$*" | sed 's/^/# /'; }
until_ok() { local end=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done; }
arcus() { "$ARCUS" "$@"; }
leave() {
    trap - EXIT
    [ -n "$UP" ] && { kill "$UP" 2>/dev/null; wait "$UP" 2>/dev/null; }
    for p in $(pgrep -f "^$BASE/run/bin/arcus-task "); do kill "$p" 2>/dev/null; done
    sleep 1
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$BASE" 2>/dev/null
    echo "1..$count"
    exit $((bad > 0))
}
trap leave EXIT
trap 'exit 1' INT TERM
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)" 2>/dev/null; }
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1; }

note "host: $(uname -r), $(stat -fc %T /sys/fs/cgroup), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1 | head -n 4), $(awk '/MemAvailable/ {print int($2 / 1024)}' /proc/meminfo) MiB of host memory free"
"$ARCUS" up --data "$BASE/data" --run "$BASE/run" --listen 127.0.0.1:0 --name gpuhost --sim-gpus 0 >"$BASE/log" 2>&1 </dev/null &
UP=$!
until_ok 30 test -s "$BASE/data/address" || { tail -n 20 "$BASE/log" | sed 's/^/# /'; echo "Bail out! the cloud does not start"; exit 1; }
arcus config set gpu --server "$(cat "$BASE/data/address")" --key-file "$BASE/data/admin.key" >/dev/null
tried() { arcus describe node gpuhost | grep -qE 'crun|runc'; }
has_gpu() { arcus gpus | grep -qiE 'nvidia|h200|h100|a100'; }
until_ok 60 tried && until_ok 30 has_gpu || { tail -n 20 "$BASE/log" | sed 's/^/# /'; echo "Bail out! the node offers no GPU"; exit 1; }
pass "the cloud is up"

# --- what works on the GPU, and knows afterwards whether it is as it was
mkdir -m 755 "$BASE/work"
cat >"$BASE/work/worker.py" <<'PY'
import ctypes, os, sys, time
import torch, torch.multiprocessing as mp
kind, gib = sys.argv[1], float(sys.argv[2])
def fill(gib, seed): return torch.arange(int(gib * (1 << 30) / 4), device="cuda", dtype=torch.float32).add_(seed)
def total(x): return x.sum(dtype=torch.float64).item()      # without a copy: what is moved is to be what was asked for
def watch(x, name):
    want = total(x); print("ready", name, os.getpid(), flush=True)
    n = 0
    while not os.path.exists("/tmp/end"):
        same = total(x) == want; n += 1
        with open("/tmp/turns." + name, "w") as f: f.write(f"{n} {same}")
        if not same: print("BROKEN", name, flush=True); sys.exit(3)
        time.sleep(0.02)
    print("intact", name, flush=True)
def other(gib): watch(fill(gib, 3), "second")
def peer(q): watch(q.get(), "peer")
if __name__ == "__main__":
    mp.set_start_method("spawn")
    p = None
    if kind == "managed":
        torch.zeros(1, device="cuda"); c = ctypes.CDLL("libcuda.so.1"); m = ctypes.c_void_p()
        print("managed", c.cuMemAllocManaged(ctypes.byref(m), ctypes.c_size_t(1 << 30), 1), c.cuMemsetD8_v2(m, 7, ctypes.c_size_t(1 << 30)), flush=True)
    x = fill(gib, 1)
    if kind == "two": p = mp.Process(target=other, args=(gib,)); p.start()
    if kind == "ipc": q = mp.Queue(); p = mp.Process(target=peer, args=(q,)); p.start(); q.put(x)
    if kind == "workers":   # forked, as a data loader's: they have the descriptors and never use CUDA
        if os.fork() == 0:
            while not os.path.exists("/tmp/end"): time.sleep(0.05)
            os._exit(0)
    watch(x, "first")
    if p: p.join(); sys.exit(p.exitcode)
PY
state() { arcus describe job "$1" -o json | json "d['state']"; }
happened() { arcus events -o json --limit 1000 2>/dev/null | grep -E "\"name\":\"task\.($1)\""; }   # one line each
fails() { happened suspend_failed | wc -l; }
why() { happened 'suspend_failed|resume_failed' | tail -n 1 | json "d['data'].get('why')"; }
in_state() { [ "$(state "$1")" = "$2" ]; }
failed_since() { [ "$(fails)" -gt "$1" ]; }
settled() { in_state "$1" suspended || failed_since "$2"; }
begin() { # begin KIND GIB PROCESSES: JOB runs and has its memory
    JOB=$(arcus submit --gpus 1 --cpus 4 --memory 16GB --workdir "$BASE/work" -- "$PY" worker.py "$1" "$2" 2>"$BASE/err" | grep -oE 'job-[0-9a-z]+' | head -n 1)
    all_ready() { [ "$(arcus logs "$JOB" | grep -c '^ready')" = "$1" ]; }
    until_ok 120 all_ready "$3" || { fail "$1: the task comes up" "$(arcus logs "$JOB" | tail -n 5; cat "$BASE/err")" "$3 processes"; return 1; }
}
turns() { arcus exec "$JOB" -- sh -c 'cat /tmp/turns.*' </dev/null 2>/dev/null | tr '\n' ' '; }
end() { # it looks at all of its memory once more
    arcus exec "$JOB" -- touch /tmp/end </dev/null
    until_ok 60 eval "state $JOB | grep -qE 'done|failed|cancelled'"
    echo "$(state "$JOB") $(arcus logs "$JOB" | grep -cE '^intact')"
}
idle=$(used)

one() { # one KIND GIB PROCESSES yes|no|any: any: whatever comes is written down, and the task must be intact
    local before failed got after
    begin "$1" "$2" "$3" || return
    before=$(used) failed=$(fails)
    like "$1: a task says whether it can be suspended" "$(arcus attempts "$JOB" -o json | json "d['items'][0]['suspendable']")" '^(yes|no: .*)$'
    arcus suspend "$JOB" >/dev/null 2>"$BASE/err" || note "$(cat "$BASE/err")"
    until_ok 120 settled "$JOB" "$failed"
    if in_state "$JOB" suspended; then got=yes; else got=no; fi
    after=$(used)
    note "$1, $2 GiB: suspendable $got$([ $got = no ] && echo " ($(why))"); GPU memory $before MiB, then $after (idle $idle)"
    [ "$4" = any ] || is "$1: suspended" "$got" "$4"
    if [ $got = yes ]; then
        if [ "$after" -le $((idle + 64)) ]; then pass "$1: the GPU is free"; else fail "$1: the GPU is free" "$after MiB" "$idle MiB, or little more"; fi
        arcus resume "$JOB" >/dev/null
        until_ok 120 in_state "$JOB" running || fail "$1: it comes back" "$(state "$JOB"): $(why)" running
    fi
    is "$1: it goes on, intact" "$(end)" "done $3"
}
one plain "$GIB" 1 yes
one workers 1 1 any
one two 2 2 any
one ipc 2 2 any
one managed 1 1 any

# --- another task has the GPU meanwhile; the first waits for it, and comes back
if begin plain 2 1; then
    first=$JOB
    arcus suspend "$first" >/dev/null; until_ok 60 in_state "$first" suspended
    other=$(arcus submit --gpus 1 --cpus 1 --memory 8GB -- "$PY" -c 'import torch, time; x = torch.ones(1 << 28, device="cuda"); print(x.sum().item(), flush=True); time.sleep(5)' | grep -oE 'job-[0-9a-z]+' | head -n 1)
    until_ok 60 in_state "$other" running
    arcus resume "$first" >/dev/null
    is "its GPU is taken: it waits" "$(arcus describe job "$first" -o json | json "d['state'] + ' ' + d['reason']")" "suspended ResumeGPUs"
    until_ok 60 in_state "$first" running
    is "when the other has ended it is back" "$(JOB=$first; state "$first"; end)" $'running\ndone 1'
fi

# --- an agent that is killed in the middle
if begin plain "$GIB" 1; then
    arcus suspend "$JOB" >/dev/null; sleep 1.5
    kill -9 "$(pgrep -f "^$ARCUS agent .*--data $BASE/data/agent" | head -n 1)"
    until_ok 120 in_state "$JOB" suspended
    is "the agent was killed in the middle: the next one finds it suspended" "$(state "$JOB")" suspended
    arcus resume "$JOB" >/dev/null; until_ok 60 in_state "$JOB" running
    is "... and brings it back" "$(end)" "done 1"
fi

# --- what Arcus adds to the driver's calls
if begin plain "$GIB" 1; then
    attempt=$(arcus attempts "$JOB" -o json | json "d['items'][0]['id']")
    "$PY" - "$(cat "$BASE/data/address")" "$(cat "$BASE/data/admin.key")" "$JOB" "$(find /sys/fs/cgroup -path "*arcus/$attempt/cgroup.procs" | head -n 1)" "$PAIRS" "$MOST_MS" >"$BASE/pairs" <<'PY'
import ctypes, json, os, ssl, statistics, sys, time, urllib.request
url, key, job, procs, pairs, most = *sys.argv[1:5], int(sys.argv[5]), float(sys.argv[6])
cu = ctypes.CDLL("libcuda.so.1"); assert cu.cuInit(0) == 0
def call(name, pid):
    buf = (ctypes.c_char * 128)(); rc = getattr(cu, "cuCheckpointProcess" + name)(ctypes.c_int(pid), ctypes.byref(buf)); assert rc == 0, (name, rc)
def uses(pid):
    try: return any(os.readlink(f"/proc/{pid}/fd/{f}") == "/dev/nvidia-uvm" for f in os.listdir(f"/proc/{pid}/fd"))
    except OSError: return False
pid = [p for p in map(int, open(procs).read().split()) if uses(p)][0]
ctx = ssl._create_unverified_context()
def ask(method, path):
    q = urllib.request.Request(url + path, method=method, data=b"{}" if method == "POST" else None, headers={"Authorization": "Bearer " + key.strip(), "Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(q, context=ctx))
def until(state):
    while ask("GET", "/v1/jobs/" + job)["state"] != state: time.sleep(0.003)
def bare():
    a = time.perf_counter(); call("Lock", pid); call("Checkpoint", pid); b = time.perf_counter(); time.sleep(0.5)
    c = time.perf_counter(); call("Restore", pid); call("Unlock", pid); return b - a, time.perf_counter() - c
def ours():
    a = time.perf_counter(); ask("POST", f"/v1/jobs/{job}/suspend"); until("suspended"); b = time.perf_counter(); time.sleep(0.5)
    # what shows that it is back is the attempt: the job is `running` from the moment it has its GPUs
    c = time.perf_counter(); ask("POST", f"/v1/jobs/{job}/resume")
    while ask("GET", f"/v1/jobs/{job}/attempts")["items"][-1]["state"] != "running": time.sleep(0.003)
    return b - a, time.perf_counter() - c
rows = []
for i in range(pairs):
    x, y = (bare(), ours()) if i % 2 == 0 else (ours(), bare())[::-1]
    rows.append((*x, *y)); time.sleep(0.5)
print("| | driver alone, s | through Arcus, s | over, ms (median of pairs) |\n|---|---|---|---|")
over = []
for name, i in (("suspend", 0), ("resume", 1)):
    d = statistics.median((r[i + 2] - r[i]) * 1e3 for r in rows); over.append(d)
    print(f"| {name} | {statistics.median(r[i] for r in rows):.3f} | {statistics.median(r[i + 2] for r in rows):.3f} | {d:.0f} |")
print("OVER", "yes" if max(over) <= most else "no", *(f"{o:.0f}" for o in over))
PY
    grep -v '^OVER' "$BASE/pairs" | sed 's/^/# /'
    like "suspend and resume take at most $MOST_MS ms more than the driver's calls, median of $PAIRS pairs at $GIB GiB" "$(grep '^OVER' "$BASE/pairs")" '^OVER yes'
    is "after all that it is intact" "$(end)" "done 1"
fi
