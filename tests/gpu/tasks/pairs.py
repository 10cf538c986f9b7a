# pairs.py URL KEY JOB PROCS-FILE PAIRS MOST-MS UVM: suspend and resume of one task through Arcus and by the driver's calls alone, in turn; a table, and "OVER yes|no ms ms"
import ctypes, json, os, ssl, statistics, sys, time, urllib.request
url, key, job, procs, pairs, most, uvm = *sys.argv[1:5], int(sys.argv[5]), float(sys.argv[6]), sys.argv[7]
cu = ctypes.CDLL("libcuda.so.1")
assert cu.cuInit(0) == 0
def call(name, pid):
    rc = getattr(cu, "cuCheckpointProcess" + name)(ctypes.c_int(pid), ctypes.byref((ctypes.c_char * 128)()))
    if rc:
        sys.exit(f"{name} of {pid}: {rc}")
def uses(pid):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{f}") == uvm for f in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
pids = [p for p in map(int, open(procs).read().split()) if uses(p)]
if len(pids) != 1:
    sys.exit(f"processes with {uvm} open: {pids}")
pid = pids[0]
ctx = ssl._create_unverified_context()
def ask(method, path):
    q = urllib.request.Request(url + path, method=method, data=b"{}" if method == "POST" else None, headers={"Authorization": "Bearer " + key.strip(), "Content-Type": "application/json"})
    with urllib.request.urlopen(q, context=ctx, timeout=30) as r:
        return json.load(r)
def until(is_so, what, limit=60):
    end = time.time() + limit
    while not is_so():
        if time.time() > end:
            sys.exit(f"waited {limit} s for {what}: {ask('GET', '/v1/jobs/' + job)}")
        time.sleep(0.003)
def state(): return ask("GET", "/v1/jobs/" + job)["state"]
def attempt(): return ask("GET", f"/v1/jobs/{job}/attempts")["items"][-1]["state"]
def bare():
    a = time.perf_counter()
    call("Lock", pid)
    call("Checkpoint", pid)
    b = time.perf_counter()
    time.sleep(0.3)
    c = time.perf_counter()
    call("Restore", pid)
    call("Unlock", pid)
    return b - a, time.perf_counter() - c
def ours():
    a = time.perf_counter()
    ask("POST", f"/v1/jobs/{job}/suspend")
    until(lambda: state() == "suspended", "suspended")
    b = time.perf_counter()
    time.sleep(0.3)
    c = time.perf_counter()
    ask("POST", f"/v1/jobs/{job}/resume")       # what shows that it is back is the attempt: the job is `running` from the moment it has its GPUs
    until(lambda: attempt() == "running", "running")
    return b - a, time.perf_counter() - c
rows, begun = [], time.time()
limit = float(os.environ.get("PAIRS_LIMIT", "1e9"))
for i in range(pairs):
    x, y = (bare(), ours()) if i % 2 == 0 else (ours(), bare())[::-1]
    rows.append((*x, *y))
    print("pair %d: driver %.3f %.3f, Arcus %.3f %.3f" % (i + 1, *x, *y), flush=True)
    if time.time() - begun > limit:
        break
    time.sleep(0.3)
print("| %d pairs | driver alone, s | through Arcus, s | over, ms (median of pairs) | least, most |\n|---|---|---|---|---|" % len(rows))
over = []
for name, i in (("suspend", 0), ("resume", 1)):
    d = [(r[i + 2] - r[i]) * 1e3 for r in rows]
    over.append(statistics.median(d))
    print(f"| {name} | {statistics.median(r[i] for r in rows):.3f} | {statistics.median(r[i + 2] for r in rows):.3f} | {over[-1]:.0f} | {min(d):.0f}, {max(d):.0f} |")
print("OVER", "yes" if max(over) <= most else "no", *(f"{o:.0f}" for o in over))
