import ctypes, os, time, types
lib, begun, owes = None, 0, 0.0
def begin():
    global lib, begun
    if begun == os.getpid():
        return
    lib = ctypes.CDLL("libcuda.so.1")
    x = ctypes.c_void_p()
    for rc in (lib.cuInit(0), lib.cuDevicePrimaryCtxRetain(ctypes.byref(x), 0)):
        if rc:
            raise RuntimeError("CUDA error %d" % rc)
    begun = os.getpid()
def _sms():
    n = ctypes.c_int()
    begin()
    lib.cuDeviceGetAttribute(ctypes.byref(n), 16, 0)
    return n.value
def busy(seconds):              # a quarter takes four times as long
    global owes
    owes += seconds * 132 / (_sms_known() or 132)
_known = 0
def _sms_known():
    global _known
    _known = _known or _sms()
    return _known
def synchronize():
    global owes
    t, owes = owes, 0.0
    time.sleep(t)
    rc = lib.cuCtxSynchronize() if lib else 0
    if rc:
        raise RuntimeError("CUDA error %d" % rc)
def is_available(): return os.path.exists("/dev/nvidia0") or "DRY_BARE" in os.environ
def device_count(): return int(is_available())
def get_device_name(): return "NVIDIA H200 (dry)"
def get_device_properties(i): return types.SimpleNamespace(multi_processor_count=_sms())
def mem_get_info():
    f, t = ctypes.c_size_t(), ctypes.c_size_t()
    lib.cuMemGetInfo_v2(ctypes.byref(f), ctypes.byref(t))
    return f.value, t.value
