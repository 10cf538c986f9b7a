#!/usr/bin/env bash
# probe.sh - the probes on a machine with an NVIDIA GPU, from the bundle: what `arcus gpus`, `describe node` and `top` say, compared with nvidia-smi,
# and what watching costs. Prints TAP; needs root, arcus in PATH (the bundle), nvidia-smi; python3 for the table of what each NVML call costs.
# It changes nothing of a device.
. "$(dirname "$0")/lib.sh"
: "${WATCH:=60}"                        # seconds that somebody looks
begin torch
ok() { if [ "$2" = 0 ]; then pass "$1"; else fail "$1" "$2" 0; fi; }
near() { # near NAME GOT WANTED SLACK
    if [ -n "$2" ] && [ -n "$3" ] && [ "$(($2 - $3))" -le "$4" ] && [ "$(($3 - $2))" -le "$4" ]; then ok "$1 ($2, nvidia-smi $3)" 0; else ok "$1 (got $2, nvidia-smi $3, slack $4)" 1; fi
}
at() { "$PY" -IS -c 'import json,sys
d=json.load(sys.stdin)
for k in sys.argv[1].split("."):
    d=d[int(k)] if isinstance(d,list) else d[k]
print(d if not isinstance(d,bool) else str(d).lower())' "$1"; }
smi() { nvidia-smi -i 0 --query-gpu="$1" --format=csv,noheader,nounits | head -n 1 | sed 's/^ *//;s/ *$//'; }

cloud_up
echo "# --- arcus gpus"; "$ARCUS" gpus -o wide | sed 's/^/#   /'
echo "# --- arcus describe node gpuhost"; "$ARCUS" describe node gpuhost | sed 's/^/#   /'
echo "# --- arcus top -n 1"; "$ARCUS" top -n 1 | sed 's/^/#   /'
echo "# --- nvidia-smi"; nvidia-smi | sed 's/^/#   /'
nvidia-smi topo -m 2>/dev/null | sed 's/^/#   /'

gpus=$("$ARCUS" gpus -o json) node=$("$ARCUS" nodes get gpuhost -o json)
is "model" "$(at items.0.model <<<"$gpus")" "$(smi name)"
is "UUID" "$(at items.0.id <<<"$gpus")" "$(smi uuid)"
is "not simulated" "$(at items.0.simulated <<<"$gpus")" false
is "driver" "$(at items.0.driver <<<"$gpus")" "$(smi driver_version)"
near "memory in MiB" "$(at items.0.memory_mib <<<"$gpus")" "$(smi memory.total)" 1
is "as many as nvidia-smi lists" "$(python3 -c 'import json,sys; print(len(json.load(sys.stdin)["items"]))' <<<"$gpus")" "$(nvidia-smi -L | grep -c '^GPU ')"
is "PCI address" "$(at info.gpus.0.pci <<<"$node" | tr a-f A-F)" "$(smi pci.bus_id | sed 's/^0000//')"
near "power cap in W" "$(($(at items.0.power_cap_mw <<<"$gpus") / 1000))" "$(smi enforced.power.limit | cut -d. -f1)" 1
live=$("$ARCUS" top -o json)
near "temperature" "$(at items.0.temperature_c <<<"$live")" "$(smi temperature.gpu)" 5
near "memory in use, MiB" "$(at items.0.memory_used_mib <<<"$live")" "$(smi memory.used)" 64
near "SM clock, MHz" "$(at items.0.clock_mhz <<<"$live")" "$(smi clocks.sm)" 1700
near "memory clock, MHz" "$(at items.0.memory_clock_mhz <<<"$live")" "$(smi clocks.mem)" 600
near "power, W" "$(($(at items.0.power_mw <<<"$live") / 1000))" "$(smi power.draw | cut -d. -f1)" 60
[ "$(at items.0.energy_mj <<<"$live")" -gt 0 ]; ok "energy is counted" $?

# --- what watching costs, by the scheduler's own clock: all threads of a process
threads_us() { local s=0 n t; for t in /proc/"$1"/task/*/schedstat; do read -r n _ <"$t" && s=$((s + n / 1000)); done; echo "$s"; }
helper=$(pgrep -f "^$ARCUS device-helper" | head -n 1) agent=$(pgrep -f "^$ARCUS agent .*$BASE" | head -n 1)
sleep 5
h0=$(threads_us "$helper") a0=$(threads_us "$agent"); sleep $((WATCH / 2)); h1=$(threads_us "$helper") a1=$(threads_us "$agent")
echo "# nobody looks: helper $(((h1 - h0) * 2 / WATCH)) us a second, agent $(((a1 - a0) * 2 / WATCH))"
arcus top -n 1 >/dev/null; sleep 3
h0=$(threads_us "$helper") a0=$(threads_us "$agent") t0=$(date +%s%N)
for _ in $(seq $(((WATCH + 4) / 5))); do arcus top -n 1 >/dev/null; sleep 4.9; done
h1=$(threads_us "$helper") a1=$(threads_us "$agent") ms=$((($(date +%s%N) - t0) / 1000000))
us=$(((h1 - h0 + a1 - a0) * 1000 / ms))
echo "# somebody looks, for $ms ms: helper $(((h1 - h0) * 1000 / ms)) us a second, agent $(((a1 - a0) * 1000 / ms)) (all that it does); 0.1 % of a core is 1000"
[ "$us" -le 1000 ]; ok "a GPU once a second: $us us of CPU a second, at most 1000" $?

# --- a task on it: its memory is the task's
"$ARCUS" run -d --gpus 1 --name holds -i host -- "$PY" -c 'import torch, time
a = torch.empty(2 << 30, dtype=torch.uint8, device="cuda"); b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16); t = time.time()
while time.time() - t < 25:
    for _ in range(50): b @ b
    torch.cuda.synchronize()' >/dev/null
for _ in $(seq 60); do [ -n "$(nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits)" ] && break; sleep 0.5; done
sleep 6
"$ARCUS" top -n 1 | sed 's/^/#   /'
live=$("$ARCUS" top -o json)
"$ARCUS" logs holds 2>&1 | tail -n 3 | sed 's/^/#   log: /'
near "memory of its processes, MiB" "$(at items.0.tasks.0.memory_used_mib <<<"$live")" "$(nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits | head -n 1)" 16
near "utilisation" "$(at items.0.utilization <<<"$live")" "$(smi utilization.gpu)" 10
near "power under load, W" "$(($(at items.0.power_mw <<<"$live") / 1000))" "$(smi power.draw | cut -d. -f1)" 100
is "it is the task's" "$(at items.0.tasks.0.name <<<"$live")" holds
"$ARCUS" cancel holds >/dev/null 2>&1
echo "# --- the kernel about NUMA"; { head -n 2 /sys/devices/system/node/node0/meminfo; head -n 1 /proc/meminfo; } | sed 's/^/#   /'
echo "# --- /metrics"; curl -sk -H "Authorization: Bearer $(cat "$BASE/data/admin.key")" "$(cat "$BASE/data/address")/metrics" 2>/dev/null | grep -v '^#' | head -n 4 | sed 's/^/#   /'

# --- what each call of the library costs, in this process
"$PY" - <<'PY' 2>&1 | sed 's/^/# /'
import ctypes, time
n = ctypes.CDLL("libnvidia-ml.so.1")
n.nvmlInit_v2()
d = ctypes.c_void_p()
n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d))
buf = ctypes.create_string_buffer(1 << 20)
u = ctypes.c_uint(); u2 = ctypes.c_uint(); q = ctypes.c_ulonglong()
class F(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("ts", ctypes.c_longlong), ("lat", ctypes.c_longlong), ("type", ctypes.c_uint), ("rc", ctypes.c_int), ("v", ctypes.c_ulonglong)]
def fields(*ids):
    a = (F * len(ids))(*[F(id=i) for i in ids])
    return lambda: n.nvmlDeviceGetFieldValues(d, len(ids), a)
def mem2():
    ctypes.memmove(buf, ctypes.byref(ctypes.c_uint(40 | 2 << 24)), 4)
    return n.nvmlDeviceGetMemoryInfo_v2(d, buf)
def procs():
    u.value = 4096
    return n.nvmlDeviceGetComputeRunningProcesses_v3(d, ctypes.byref(u), buf)
calls = {
    "utilization": lambda: n.nvmlDeviceGetUtilizationRates(d, buf), "memory v1": lambda: n.nvmlDeviceGetMemoryInfo(d, buf), "memory v2": mem2,
    "power field 186": fields(186), "power": lambda: n.nvmlDeviceGetPowerUsage(d, ctypes.byref(u)), "temperature": lambda: n.nvmlDeviceGetTemperature(d, 0, ctypes.byref(u)),
    "clock sm": lambda: n.nvmlDeviceGetClockInfo(d, 1, ctypes.byref(u)), "clock mem": lambda: n.nvmlDeviceGetClockInfo(d, 2, ctypes.byref(u)),
    "throttle": lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(d, ctypes.byref(q)), "processes": procs,
    "energy": lambda: n.nvmlDeviceGetTotalEnergyConsumption(d, ctypes.byref(q)), "encoder": lambda: n.nvmlDeviceGetEncoderUtilization(d, ctypes.byref(u), ctypes.byref(u2)),
    "decoder": lambda: n.nvmlDeviceGetDecoderUtilization(d, ctypes.byref(u), ctypes.byref(u2)), "slow fields": fields(3, 4, 82, 142, 143, 144, 145, 94),
    "fields ecc 3 4": fields(3, 4), "fields rows": fields(142, 143, 144, 145), "field mem temp": fields(82), "field replays": fields(94), "field energy": fields(83),
}
print("%-18s %8s %10s %4s" % ("call", "cpu us", "wall us", "rc"))
for name, f in calls.items():
    rc = f()
    c0, w0 = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(20): f()
    print("%-18s %8.1f %10.1f %4d" % (name, (time.process_time_ns() - c0) / 20e3, (time.perf_counter_ns() - w0) / 20e3, rc))
c0 = time.process_time_ns()
for _ in range(5):
    time.sleep(1)
    for k in ("utilization", "memory v2", "power field 186", "temperature", "clock sm", "clock mem", "throttle", "processes"): calls[k]()
print("one round a second, cold: %.0f us of CPU" % ((time.process_time_ns() - c0) / 5e3))
PY
echo "# --- log"; tail -n 15 "$BASE/log" | sed 's/^/#   /'
