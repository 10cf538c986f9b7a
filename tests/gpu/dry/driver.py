# driver.py FOLDER: the driver of a dry run (dry.sh). Knows what each process holds (FOLDER/socket), tells the made-up NVML (FOLDER/nvml.conf), and does to those who share a GPU
# what a real one did: who fails there, or dies in a kernel, fails all clients of MPS (700), and MPS writes that down.
import glob, os, socket, struct, sys, threading, time
folder = sys.argv[1]
TOTAL, QUARTER, lock, clients = 143155, 35797, threading.Lock(), {}
class Client:
    def __init__(self, pid, door): self.door = door; self.pid, self.mib, self.kind, self.until, self.fault, self.counts = pid, 0, "process", 0.0, 0, False
def gone(c):
    try: return c.door.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError: return False
    except OSError: return True
def tell():
    lines = ["gpus 1", "gpu 0 name NVIDIA H200", "gpu 0 mem 143771", f"cuda {folder}/cuda.conf"]
    used = 0
    for c in clients.values():
        if c.counts and c.mib:
            lines.append(f"gpu 0 {c.kind} {c.pid} {c.mib}")
            used += c.mib
    lines.append(f"gpu 0 mem_used {used}")
    with open(folder + "/new", "w") as f: f.write("\n".join(lines) + "\n")
    os.rename(folder + "/new", folder + "/nvml.conf")
def write_log(words):
    for path in glob.glob("/opt/arcus-*/run/mps/*/log/daemon"):
        with open(path, "a") as f: f.write(f"[2026-11-16 08:00:00.000 Server   17] {words}\n")
def fail_all(pid):
    for c in clients.values():
        if c.kind == "client" and c.counts: c.fault = 700
    write_log("Device 0 status is FAULT")
    write_log(f"Client {{PID: {pid}, Context ID: 1}} encountered a fatal exception")
def answer(c, words):
    w = words.split()
    if w[0] == "init": c.kind, c.counts = w[1], True
    elif w[0] == "take":
        most = QUARTER if c.kind == "client" else TOTAL
        if c.mib + int(w[1]) > most + 145: return "2"
        c.mib += int(w[1]); tell()
    elif w[0] == "info":
        most = QUARTER if c.kind == "client" else TOTAL
        return f"0 {most - max(0, c.mib - 145)} {most}"
    elif w[0] == "kernel":
        if w[1] == "bad": c.fault = 700; fail_all(c.pid)
        c.until = time.time() + int(w[2]) / 1.8e9
    elif w[0] == "sync":
        while time.time() < c.until and not c.fault and not gone(c):
            lock.release(); time.sleep(0.005); lock.acquire()
        return str(c.fault)
    elif w[0] in ("lock", "checkpoint", "restore", "unlock", "state"):
        lock.release(); time.sleep({"checkpoint": 0.3, "restore": 0.1}.get(w[0], 0.001)); lock.acquire()
    return "0"
def serve(s):
    pid = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    c = Client(pid, s)
    with lock: clients[id(c)] = c
    while True:
        try: words = s.recv(128).decode()
        except OSError: words = ""
        if not words: break
        with lock: said = answer(c, words)
        try: s.send(said.encode())
        except OSError: break
    with lock:
        del clients[id(c)]
        if c.kind == "client" and time.time() < c.until and not c.fault: fail_all(pid)
        tell()
    s.close()
tell()
open(folder + "/cuda.conf", "a").close()
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.bind(folder + "/socket")
os.chmod(folder + "/socket", 0o666)
door.listen(64)
while True:
    threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
