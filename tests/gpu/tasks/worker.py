# worker.py KIND GIB: fills memory of the GPU and looks all the time whether it is as it was, until there is a /tmp/end. KIND: plain; two (processes); ipc (a second one has
# the first one's memory by CUDA IPC); managed (memory besides that the driver moves itself); workers (forked, as a data loader's: they have the descriptors and never use CUDA)
import ctypes, os, sys, time
import torch, torch.multiprocessing as mp
kind, gib = sys.argv[1], float(sys.argv[2])
def fill(gib, seed):
    return torch.arange(int(gib * (1 << 30) / 4), device="cuda", dtype=torch.float32).add_(seed)
def total(x):                   # in pieces, since each is copied for it: what is moved is to be what was asked for
    return sum(p.sum(dtype=torch.float64).item() for p in x.split(1 << 24))
def watch(x, name):
    want, n = total(x), 0
    print("ready", name, os.getpid(), flush=True)
    while not os.path.exists("/tmp/end"):
        same = total(x) == want
        n += 1
        with open("/tmp/turns." + name, "w") as f:
            f.write(f"{n} {same}\n")
        if not same:
            print("BROKEN", name, flush=True)
            sys.exit(3)
        time.sleep(0.02)
    print("intact", name, flush=True)
def other(gib):
    watch(fill(gib, 3), "second")
def peer(q):
    watch(q.get(), "peer")
if __name__ == "__main__":
    mp.set_start_method("spawn")
    p = None
    if kind == "managed":
        torch.zeros(1, device="cuda")
        c, m = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
        print("managed", c.cuMemAllocManaged(ctypes.byref(m), ctypes.c_size_t(1 << 30), 1), c.cuMemsetD8_v2(m, 7, ctypes.c_size_t(1 << 30)), flush=True)
    x = fill(gib, 1)
    torch.cuda.synchronize()
    if kind == "two":
        p = mp.Process(target=other, args=(gib,))
        p.start()
    if kind == "ipc":
        q = mp.Queue()
        p = mp.Process(target=peer, args=(q,))
        p.start()
        q.put(x)
    if kind == "workers" and os.fork() == 0:
        while not os.path.exists("/tmp/end"):
            time.sleep(0.05)
        os._exit(0)
    watch(x, "first")
    if p:
        p.join()
        sys.exit(p.exitcode)
