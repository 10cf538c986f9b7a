# init.py: "INIT ms of cuInit, ms of the first context"
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
d, x = ctypes.c_int(), ctypes.c_void_p()
t = time.perf_counter()
assert cuda.cuInit(0) == 0
a = time.perf_counter()
assert cuda.cuDeviceGet(ctypes.byref(d), 0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(x), d) == 0
print("INIT %.1f %.1f" % ((a - t) * 1e3, (time.perf_counter() - a) * 1e3), flush=True)
