# spin.py SECONDS [bad|long|idle]: short kernels one after the other; or one that writes where it may not; one that takes ten seconds; none
import ctypes, sys, time
c, P = ctypes.CDLL("libcuda.so.1"), ctypes.byref
d, x, m = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
def must(rc, what):
    if rc:
        print(what, "failed", rc, flush=True)
        sys.exit(4)
must(c.cuInit(0), "init")
must(c.cuDeviceGet(P(d), 0), "device")
must(c.cuDevicePrimaryCtxRetain(P(x), d), "context")
must(c.cuCtxSetCurrent(x), "current")
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 n) { .reg .u64 a,b,c,m; .reg .pred p; ld.param.u64 m,[n]; mov.u64 a,%clock64; L: mov.u64 b,%clock64; sub.u64 c,b,a; setp.lt.u64 p,c,m; @p bra L; ret; }
.visible .entry bad() { .reg .u64 a; mov.u64 a,16; st.global.u32 [a],7; ret; }
"""
must(c.cuModuleLoadData(P(m), PTX), "module")
def kernel(name, clocks=None):
    k, v = ctypes.c_void_p(), ctypes.c_uint64(clocks or 0)
    must(c.cuModuleGetFunction(P(k), m, name), "function")
    a = (ctypes.c_void_p * 1)(ctypes.cast(P(v), ctypes.c_void_p)) if clocks else None
    return c.cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, None, a, None)
print("begins", time.time(), flush=True)
if "bad" in sys.argv:
    time.sleep(1)
    print("bad", kernel(b"bad"), c.cuCtxSynchronize(), time.time(), flush=True)
    sys.exit(0)
if "long" in sys.argv:
    kernel(b"spin", 18_000_000_000)
    print("in kernel", flush=True)
    print("sync", c.cuCtxSynchronize(), time.time(), flush=True)
    sys.exit(0)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    if "idle" in sys.argv:
        time.sleep(0.2)
        continue
    rc = kernel(b"spin", 100_000_000) or c.cuCtxSynchronize()
    if rc:
        print("failed", rc, time.time(), flush=True)
        sys.exit(7)
print("well", time.time(), flush=True)
