#!/usr/bin/env python3
# mps_facts.py - what MPS itself does on this host when a client dies, for who builds on it (src/agent/mps_watch.c, mps_end.c): what neighbours feel, what log and status say, whether
# terminate_client saves them. Prints facts, no TAP; needs root and an NVIDIA GPU; no Arcus, no PyTorch; sets no mode of the card. About 90 seconds.
import ctypes, os, shutil, subprocess, sys, threading, time
CLONE = dict(ns=0x20000, uts=0x4000000, ipc=0x8000000, user=0x10000000, pid=0x20000000, net=0x40000000)
libc = ctypes.CDLL(None, use_errno=True)
HERE, PY, BEGUN = os.path.dirname(os.path.abspath(__file__)), sys.executable, time.time()
MPS = shutil.which("nvidia-cuda-mps-control") or "/usr/local/nvidia/bin/nvidia-cuda-mps-control"
UUID = subprocess.getoutput("nvidia-smi --query-gpu=uuid --format=csv,noheader").splitlines()[0].strip()
TOP = "/run/mps-facts"
DRY = {k: v for k, v in os.environ.items() if k.startswith("DRY_")}     # dry.sh
PIPE, LOG, SHM = TOP + "/pipe", TOP + "/log", TOP + "/shm"

def say(*a): print("%6.1f" % (time.time() - BEGUN), *a, flush=True)
def head(text): print(flush=True); say("== " + text)
def mount(src, to, kind, flags, data=""):
    if libc.mount((src or "").encode(), to.encode(), (kind or "").encode() or None, flags, data.encode() or None):
        raise OSError(ctypes.get_errno(), "mount " + to)
def fresh():
    subprocess.run(["umount", "-l", SHM], stderr=subprocess.DEVNULL)
    shutil.rmtree(TOP, ignore_errors=True)
    for d in (PIPE, LOG, SHM): os.makedirs(d)
    os.chmod(TOP, 0o711)
    os.chmod(PIPE, 0o755)
    mount("shm", SHM, "tmpfs", 0, "mode=1777,size=1g")
def daemon():
    def pre():
        if libc.unshare(CLONE["ns"]): os._exit(98)
        mount("", "/", "", 0x44000)
        mount(SHM, "/dev/shm", "", 4096)
    env = {"CUDA_VISIBLE_DEVICES": UUID, "CUDA_MPS_PIPE_DIRECTORY": PIPE, "CUDA_MPS_LOG_DIRECTORY": LOG}
    p = subprocess.Popen([MPS, "-f", "--multiuser-server"], env=env, preexec_fn=pre, stdin=subprocess.DEVNULL, stdout=open(TOP + "/out", "ab"), stderr=subprocess.STDOUT, cwd="/")
    for _ in range(100):
        if os.path.exists(PIPE + "/control"): break
        time.sleep(0.05)
    time.sleep(0.3)
    return p
def ctl(*lines):
    try:
        r = subprocess.run([MPS], input="\n".join(lines) + "\n", env={"CUDA_MPS_PIPE_DIRECTORY": PIPE, "CUDA_MPS_LOG_DIRECTORY": LOG}, text=True, capture_output=True, timeout=10)
        return f"rc {r.returncode}: {(r.stdout + r.stderr).strip()!r}"
    except subprocess.TimeoutExpired:
        return "hangs"
def servers():
    try: return subprocess.run([MPS], input="get_server_list\n", env={"CUDA_MPS_PIPE_DIRECTORY": PIPE}, text=True, capture_output=True, timeout=10).stdout.split()
    except subprocess.TimeoutExpired: return []
def statuses(): return [(s, ctl(f"get_server_status {s}")) for s in servers()]

# A client as a task is one: in namespaces of its own, as root of a range of ids, with the one socket of the pipe folder.
def client(*words, base=300000):
    r, w = os.pipe(); go_r, go_w = os.pipe(); out_r, out_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(out_w, 1); os.dup2(out_w, 2); os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            if libc.unshare(sum(CLONE.values())): raise OSError(ctypes.get_errno(), "unshare")
            os.write(w, b"x"); os.read(go_r, 1)
            os.setgid(0); os.setuid(0)
            mount("", "/", "", 0x44000)
            mount("own", "/dev/shm", "tmpfs", 0, "mode=1777,size=256m")
            mount("t", "/mnt", "tmpfs", 0, "mode=755")
            os.mkdir("/mnt/pipe"); open("/mnt/pipe/control", "w").close(); mount(PIPE + "/control", "/mnt/pipe/control", "", 4096)
            kid = os.fork()
            if kid == 0:
                mount("proc", "/proc", "proc", 0)
                os.execve(PY, [PY, SPIN, *map(str, words)], {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""), "CUDA_MPS_PIPE_DIRECTORY": "/mnt/pipe", "HOME": "/mnt", **DRY})
            os._exit(os.waitstatus_to_exitcode(os.waitpid(kid, 0)[1]) & 127)
        except BaseException as e:
            os.write(1, f"could not: {e!r}\n".encode()); os._exit(99)
    os.close(out_w); os.read(r, 1)
    for f in ("uid_map", "gid_map"): open(f"/proc/{pid}/{f}", "w").write(f"0 {base} 65536\n")
    os.write(go_w, b"x")
    text = []
    def reader():
        while b := os.read(out_r, 65536): text.append(b)
    t = threading.Thread(target=reader, daemon=True)
    t.start()
    return pid, text, t
def words_of(job): return b"".join(job[1]).decode(errors="replace").strip()
def says(job, word, wait=20):
    end = time.time() + wait
    while not any(w in words_of(job) for w in (word, "failed", "could not")) and time.time() < end: time.sleep(0.05)
def kids(job): return [int(k) for k in subprocess.run(["pgrep", "-P", str(job[0])], text=True, capture_output=True).stdout.split()]
def done(job, wait=20):
    end = time.time() + wait
    while time.time() < end:
        p, st = os.waitpid(job[0], os.WNOHANG)
        if p:
            job[2].join(2)
            return f"rc {os.waitstatus_to_exitcode(st)}: {words_of(job)!r}"
        time.sleep(0.02)
    for k in kids(job): os.kill(k, 9)
    os.kill(job[0], 9); os.waitpid(job[0], 0)
    return f"still running: {words_of(job)!r}"
def signal(pids, n):
    for k in pids:
        try: os.kill(k, n)
        except OSError: pass
seen = {}
def logs():
    for f in [TOP + "/out"] + [LOG + "/" + n for n in sorted(os.listdir(LOG))]:
        text = open(f, errors="replace").read() if os.path.isfile(f) else ""
        new = text[seen.get(f, 0):]
        seen[f] = len(text)
        for line in new.splitlines()[-14:]: say("    log %s: %s" % (os.path.basename(f), line[:220]))
def victim(name, how, *words):
    head(name)
    a = client(8); says(a, "begins")
    b = client(8, *words, base=400000); says(b, "in kernel" if "long" in words else "begins")
    time.sleep(0.7)
    pids = kids(b)
    say("client", pids, "neighbour", kids(a), "status", statuses())
    t = time.time()
    if how == "stop": signal(pids, 19)
    if how in ("terminate", "stop"): say("  terminate_client:", [ctl(f"terminate_client {s} {k}") for s in servers() for k in pids], "%.3f s" % (time.time() - t))
    if how in ("kill", "terminate", "stop"): signal(pids, 9)
    if how == "term": signal(pids, 15)
    say("  done to it at %.3f" % time.time())
    for _ in range(3): time.sleep(0.3); say("  status", statuses())
    say("  it:", done(b)); say("  neighbour:", done(a)); logs()

fresh()
SPIN = TOP + "/spin.py"                 # where whoever is not root of the host sees it, too
shutil.copy(HERE + "/tasks/spin.py", SPIN); os.chmod(SPIN, 0o644)
d = daemon()
try:
    say(ctl("set_default_active_thread_percentage 25", "set_default_device_pinned_mem_limit 0 35942M"))
    victim("killed in mid-kernel", "kill", "long")
    victim("terminate_client, then killed, in mid-kernel", "terminate", "long")
    victim("stopped, terminate_client, killed, in mid-kernel", "stop", "long")
    victim("a fault", "none", "bad")
    victim("killed between short kernels", "kill")
    victim("killed when idle", "kill", "idle")
    victim("SIGTERM in mid-kernel", "term", "long")
    head("the daemon is killed")
    a = client(8); says(a, "begins")
    s = servers()
    d.kill(); d.wait()
    say(done(a))
    time.sleep(2)
    say("servers alive:", [x for x in s if os.path.exists(f"/proc/{x}")], subprocess.getoutput("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv,noheader"))
    logs()
    signal(map(int, s), 9)
finally:
    d.kill()
    subprocess.run(["umount", "-l", SHM])
    shutil.rmtree(TOP, ignore_errors=True)
