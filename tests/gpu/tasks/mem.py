# mem.py write|read|hold MIB [PROCESSES [PIECE]]: takes memory in pieces of 64 MiB (PIECE), as much as it gets up to MIB, in so many processes. write and hold put a pattern
# there, read counts how often it finds that.
import ctypes as c, os, sys, time
what, most = sys.argv[1], int(sys.argv[2])
for _ in range(int(sys.argv[3]) - 1 if len(sys.argv) > 3 else 0):
    if os.fork() == 0:
        break
cu, ctx, dev = c.CDLL("libcuda.so.1"), c.c_void_p(), c.c_int()
def do(rc, name):
    if rc:
        print(name, "failed", rc, flush=True)
        sys.exit(3)
do(cu.cuInit(0), "init")
do(cu.cuDeviceGet(c.byref(dev), 0), "device")
do(cu.cuDevicePrimaryCtxRetain(c.byref(ctx), dev), "context")
do(cu.cuCtxSetCurrent(ctx), "context")
free, total = c.c_size_t(), c.c_size_t()
do(cu.cuMemGetInfo_v2(c.byref(free), c.byref(total)), "info")
print("free", free.value >> 20, "MiB", flush=True)
piece, got, found, host = (int(sys.argv[4]) if len(sys.argv) > 4 else 64) << 20, 0, 0, (c.c_uint32 * (1 << 20))()
while got + piece <= most << 20:
    p = c.c_uint64()
    rc = cu.cuMemAlloc_v2(c.byref(p), c.c_size_t(piece))
    if rc:
        print("refused", rc, "after", got >> 20, "MiB", flush=True)
        break
    got += piece
    if what == "read":
        for at in range(0, piece, c.sizeof(host) * 8):
            do(cu.cuMemcpyDtoH_v2(host, c.c_uint64(p.value + at), c.c_size_t(c.sizeof(host))), "read")
            found += bytes(host).count(b"\x5a\xa5\x0f\xf0")
    else:
        do(cu.cuMemsetD32_v2(p, 0xf00fa55a, c.c_size_t(piece // 4)), "write")
do(cu.cuCtxSynchronize(), "sync")
print(what, got >> 20, "MiB", found, "found at %.3f" % time.time(), flush=True)
if what == "hold":
    time.sleep(120)
