#!/usr/bin/env python3
# What MPS does on this host, for who builds on it: whether an environment widens a share, what a fault and a kill do to neighbours, what log and status say. Prints facts, no TAP; needs root, PyTorch and an NVIDIA GPU; sets no mode of the card. About 5 minutes.
import ctypes, os, signal, socket, stat, subprocess, sys, time, shutil, threading
CLONE = dict(ns=0x20000, uts=0x4000000, ipc=0x8000000, user=0x10000000, pid=0x20000000, net=0x40000000)
libc = ctypes.CDLL(None, use_errno=True)
def mount(src, to, kind, flags, data=""):
    if libc.mount((src or "").encode(), to.encode(), (kind or "").encode() or None, flags, data.encode() or None): raise OSError(ctypes.get_errno(), "mount " + to)
CLIENT = r'''
import ctypes, os, sys, time
c = ctypes.CDLL("libcuda.so.1"); P = ctypes.byref
def ok(rc, what):
    if rc: print(what, "->", rc, flush=True)
    return rc == 0
what = sys.argv[1]
if not ok(c.cuInit(0), "cuInit"): sys.exit(1)
d = ctypes.c_int(); x = ctypes.c_void_p(); n = ctypes.c_int(); f = ctypes.c_size_t(); t = ctypes.c_size_t()
ok(c.cuDeviceGet(P(d), 0), "get")
if not ok(c.cuCtxCreate_v2(P(x), 0, d), "ctx"): sys.exit(1)
c.cuDeviceGetAttribute(P(n), 16, d); c.cuMemGetInfo_v2(P(f), P(t))
print("pid", os.getpid(), "SMs", n.value, "free MiB", f.value >> 20, "of", t.value >> 20, flush=True)
def alloc(mib):
    p = ctypes.c_uint64(); return c.cuMemAlloc_v2(P(p), ctypes.c_size_t(mib << 20)), p
if what == "alloc":
    for m in map(int, sys.argv[2:]): print("alloc", m, "MiB ->", alloc(m)[0], flush=True)
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 n) { .reg .u64 a,b,c,m; .reg .pred p; ld.param.u64 m,[n]; mov.u64 a,%clock64; L: mov.u64 b,%clock64; sub.u64 c,b,a; setp.lt.u64 p,c,m; @p bra L; ret; }
.visible .entry bad() { .reg .u64 a; mov.u64 a,16; st.global.u32 [a],7; ret; }
"""
def kernel(name, *args):
    m = ctypes.c_void_p(); k = ctypes.c_void_p()
    ok(c.cuModuleLoadData(P(m), PTX), "module"); ok(c.cuModuleGetFunction(P(k), m, name), "function")
    a = (ctypes.c_void_p * 1)(*[ctypes.cast(P(v), ctypes.c_void_p) for v in args]) if args else None
    return c.cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, None, a, None)
if what == "spin":
    alloc(int(sys.argv[3]))
    end = time.time() + float(sys.argv[2])
    while time.time() < end:
        rc = kernel(b"spin", ctypes.c_uint64(200_000_000)) or c.cuCtxSynchronize()
        if rc: print("spin ->", rc, "at", round(end - time.time(), 2), "s before its end", flush=True); sys.exit(3)
    print("spin ended well", flush=True)
if what == "long": kernel(b"spin", ctypes.c_uint64(20_000_000_000)); print("in kernel", flush=True); print("sync ->", c.cuCtxSynchronize(), flush=True)
if what == "bad": print("launch", kernel(b"bad"), "sync ->", c.cuCtxSynchronize(), flush=True)
'''
open("/tmp/mps-client.py", "w").write(CLIENT)
PY = sys.executable
MPS = shutil.which("nvidia-cuda-mps-control") or "/usr/local/nvidia/bin/nvidia-cuda-mps-control"
UUID = subprocess.getoutput("nvidia-smi --query-gpu=uuid --format=csv,noheader").splitlines()[0].strip()
TOP = "/run/mps-facts"; PIPE = TOP + "/pipe"; LOG = TOP + "/log"; SHM = TOP + "/shm"
def say(*a): print(*a, flush=True)
def head(t): say("\n== " + t)
def fresh():
    subprocess.run(["umount", "-l", SHM], stderr=subprocess.DEVNULL); shutil.rmtree(TOP, ignore_errors=True)
    for d in (PIPE, LOG, SHM): os.makedirs(d)
    os.chmod(TOP, 0o711); os.chmod(PIPE, 0o755)
    mount("shm", SHM, "tmpfs", 0, "mode=1777,size=1g")
def daemon(args=("-f", "--multiuser-server")):
    def pre():
        os.unshare(CLONE["ns"]); mount("", "/", "", 0x44000); mount(SHM, "/dev/shm", "", 4096)
    p = subprocess.Popen([MPS, *args], env={"CUDA_VISIBLE_DEVICES": UUID, "CUDA_MPS_PIPE_DIRECTORY": PIPE, "CUDA_MPS_LOG_DIRECTORY": LOG}, preexec_fn=pre, stdin=subprocess.DEVNULL, stdout=open(TOP + "/out", "ab"), stderr=subprocess.STDOUT, cwd="/")
    for _ in range(100):
        if os.path.exists(PIPE + "/control"): break
        time.sleep(0.05)
    time.sleep(0.3)
    return p
def ctl(*lines):
    try: r = subprocess.run([MPS], input="\n".join(lines) + "\n", env={"CUDA_MPS_PIPE_DIRECTORY": PIPE, "CUDA_MPS_LOG_DIRECTORY": LOG}, text=True, capture_output=True, timeout=20); return f"rc {r.returncode}: {(r.stdout + r.stderr).strip()!r}"
    except subprocess.TimeoutExpired: return "hangs"
def inside(argv, pipe=PIPE, shm=True, base=300000, env={}, stdin=None, names=None, wait=60, spaces=("ns", "uts", "ipc", "user", "pid", "net"), uid=0, background=False):
    """runs argv in own namespaces, as uid inside of a range of 65536 ids from base; names: only these files of the pipe folder."""
    r, w = os.pipe(); go_r, go_w = os.pipe(); out_r, out_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(out_w, 1); os.dup2(out_w, 2)
            i = os.open("/dev/null", os.O_RDONLY) if stdin is None else None
            if i is None:
                a, b = os.pipe(); os.write(b, stdin.encode()); os.close(b); i = a
            os.dup2(i, 0)
            flags = 0
            for s in spaces: flags |= CLONE[s]
            os.unshare(flags); os.write(w, b"x"); os.read(go_r, 1)
            if "user" in spaces: os.setgid(uid); os.setuid(uid)
            mount("", "/", "", 0x44000)
            if shm: mount(SHM, "/dev/shm", "", 4096)
            else: mount("own", "/dev/shm", "tmpfs", 0, "mode=1777,size=256m")
            mount("t", "/mnt", "tmpfs", 0, "mode=755")
            if names is None: p = pipe
            else:
                p = "/mnt/pipe"; os.mkdir(p)
                for n in names: open(p + "/" + n, "w").close(); mount(pipe + "/" + n, p + "/" + n, "", 4096)
            kid = os.fork()
            if kid == 0:
                if "pid" in spaces: mount("proc", "/proc", "proc", 0)
                os.execve(argv[0], argv, {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""), "CUDA_MPS_PIPE_DIRECTORY": p, **env})
            _, st = os.waitpid(kid, 0)
            os._exit(os.waitstatus_to_exitcode(st) & 127)
        except BaseException as e:
            os.write(1, f"could not: {e!r}\n".encode()); os._exit(99)
    os.close(out_w); os.read(r, 1)
    if "user" in spaces:
        for f in ("uid_map", "gid_map"): open(f"/proc/{pid}/{f}", "w").write(f"0 {base} 65536\n")
    os.write(go_w, b"x")
    text = []
    def reader():
        while (b := os.read(out_r, 65536)): text.append(b)
    t = threading.Thread(target=reader, daemon=True); t.start()
    if background: return pid, text, t
    end = time.time() + wait
    while time.time() < end:
        p, st = os.waitpid(pid, os.WNOHANG)
        if p: t.join(2); return f"rc {os.waitstatus_to_exitcode(st)}: {b''.join(text).decode(errors='replace').strip()!r}"
        time.sleep(0.02)
    subprocess.run(f"pkill -9 -P {pid}; kill -9 {pid}", shell=True); os.waitpid(pid, 0)
    return f"still running after {wait} s: {b''.join(text).decode(errors='replace').strip()!r}"
def done(job, wait=30):
    pid, text, t = job; end = time.time() + wait
    while time.time() < end:
        p, st = os.waitpid(pid, os.WNOHANG)
        if p: t.join(2); return f"rc {os.waitstatus_to_exitcode(st)}: {b''.join(text).decode(errors='replace').strip()!r}"
        time.sleep(0.02)
    subprocess.run(f"pkill -9 -P {pid}; kill -9 {pid}", shell=True); os.waitpid(pid, 0)
    return f"still running: {b''.join(text).decode(errors='replace').strip()!r}"
def client(*a): return [PY, "/tmp/mps-client.py", *map(str, a)]
def show(d):
    for n in sorted(os.listdir(d)):
        s = os.lstat(d + "/" + n); say("   ", stat.filemode(s.st_mode), s.st_uid, s.st_gid, s.st_size, n)
def apps(): return subprocess.getoutput("nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv,noheader; nvidia-smi | grep -E 'MiB.*[|]$| C |M.C'")
def nvml():
    n = ctypes.CDLL("libnvidia-ml.so.1"); n.nvmlInit_v2(); h = ctypes.c_void_p(); n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(h)); out = []
    class P(ctypes.Structure): _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]
    for f in ("Compute", "MPSCompute", "Graphics"):
        k = ctypes.c_uint(64); a = (P * 64)(); rc = getattr(n, f"nvmlDeviceGet{f}RunningProcesses_v3")(h, ctypes.byref(k), a)
        out.append(f"{f}: rc {rc} " + str([(a[i].pid, a[i].used >> 20) for i in range(min(k.value, 64))]))
    return "; ".join(out)
def tail(n=12):
    for f in sorted(os.listdir(LOG)): say("  --", f); say("    " + subprocess.getoutput(f"tail -n {n} {LOG}/{f}").replace("\n", "\n    "))


TORCH = """
import os, sys, time, torch
n = 8192; a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16); b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16); c = torch.empty_like(a)
torch.matmul(a, b, out=c); torch.cuda.synchronize()
begin = float(sys.argv[1]); length = float(sys.argv[2])
while time.time() < begin: torch.matmul(a, b, out=c); torch.cuda.synchronize()
k = 0; t = time.time()
while time.time() - t < length:
    for _ in range(8): torch.matmul(a, b, out=c)
    torch.cuda.synchronize(); k += 8
print("TFLOPS %.1f" % (2 * n ** 3 * k / (time.time() - t) / 1e12), torch.cuda.get_device_properties(0).multi_processor_count, flush=True)
"""
open("/tmp/mps-torch.py", "w").write(TORCH)
def torch(begin, length): return [PY, "/tmp/mps-torch.py", str(begin), str(length)]
def out(n=14): say("    " + subprocess.getoutput(f"tail -n {n} {TOP}/out").replace("\n", "\n    "))
def begin():
    fresh(); d = daemon(); ctl("set_default_active_thread_percentage 25", "set_default_device_pinned_mem_limit 0 35942M"); return d
def servers(): return subprocess.getoutput(f"echo get_server_list | CUDA_MPS_PIPE_DIRECTORY={PIPE} {MPS}").split()
HOME = {"HOME": "/mnt", "TORCHINDUCTOR_CACHE_DIR": "/mnt"}
d = begin(); only = ["control"]
head("one client, 25 %"); t = time.time() + 12; say(inside(torch(t, 4), names=only, env=HOME))
WIDE = [("percentage 100", {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100"}), ("per context", {"CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING": "1"}), ("both", {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100", "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING": "1"}), ("priority 0", {"CUDA_MPS_CLIENT_PRIORITY": "0"}), ("memory", {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=120G"})]
for name, env in WIDE:
    t = time.time() + 10; say(name, inside(torch(t, 3), names=only, env={**HOME, **env})); say("   ", inside(client("alloc", 34000, 36000), names=only, env=env))
head("per server: set_active_thread_percentage and again 'both'"); [say(ctl(f"set_active_thread_percentage {s} 25", f"get_active_thread_percentage {s}", f"get_server_status {s}")) for s in servers()]
t = time.time() + 10; say(inside(torch(t, 3), names=only, env={**HOME, **WIDE[2][1]}))
head("four at once, 25 % each"); t = time.time() + 20; jobs = [inside(torch(t, 8), names=only, env=HOME, base=300000 + i * 65536, background=True) for i in range(4)]; [say(done(j, 60)) for j in jobs]
head("four at once, one of them with both"); t = time.time() + 20; jobs = [inside(torch(t, 8), names=only, env={**HOME, **(WIDE[2][1] if i == 0 else {})}, base=300000 + i * 65536, background=True) for i in range(4)]; [say(done(j, 60)) for j in jobs]
head("bare, the whole GPU"); say(subprocess.getoutput(f"CUDA_MPS_PIPE_DIRECTORY=/nowhere {PY} /tmp/mps-torch.py {time.time() + 8} 5"))
head("killed in mid-kernel, a neighbour, again, with the log"); say(servers(), [ctl(f"get_server_status {s}") for s in servers()])
def victim(how, what=("long",)):
    a = inside(client("spin", 9, 100), names=only, background=True); b = inside(client(*what), names=only, base=400000, background=True); time.sleep(3.5)
    kids = subprocess.getoutput(f"pgrep -P {b[0]}").split(); say(how, "client", kids, "status", [ctl(f"get_server_status {s}") for s in servers()]); t = time.time()
    if how == "terminate": say("  terminate_client:", [ctl(f"terminate_client {s} {k}") for s in servers() for k in kids], round(time.time() - t, 3), "s"); [os.kill(int(k), 9) for k in kids if os.path.exists(f"/proc/{k}")]
    elif how == "term": [os.kill(int(k), 15) for k in kids]
    elif how == "kill": [os.kill(int(k), 9) for k in kids]
    elif how == "freeze": [os.kill(int(k), 19) for k in kids]; say("  terminate_client:", [ctl(f"terminate_client {s} {k}") for s in servers() for k in kids]); [os.kill(int(k), 9) for k in kids if os.path.exists(f"/proc/{k}")]
    for i in range(6): time.sleep(0.25); say("   status", [ctl(f"get_server_status {s}") for s in servers()])
    say("  it:", done(b, 30)); say("  neighbour:", done(a, 30)); out(10)
for how in ("kill", "terminate", "freeze", "term"): victim(how)
victim("kill", ("spin", 9, 50))
head("a fault"); victim("none", ("bad",))
head("a client that is idle is killed"); victim("kill", ("spin", 1, 10))
head("daemon killed: does the server stay?"); a = inside(client("spin", 9, 100), names=only, background=True); time.sleep(3); s = servers(); d.kill(); d.wait(); say(done(a, 20)); 
for i in range(8): time.sleep(1); say([x for x in s if os.path.exists(f"/proc/{x}")], nvml())
for x in s:
    try: os.kill(int(x), 9)
    except OSError: pass
subprocess.run(["umount", "-l", SHM]); shutil.rmtree(TOP, ignore_errors=True)
