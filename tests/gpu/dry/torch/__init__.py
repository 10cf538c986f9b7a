# A stand-in for PyTorch in dry runs: as much of it as the programs of tests/gpu ask for. It computes nothing, takes its time, and holds memory through libcuda.so.1.
import ctypes, time
from . import cuda
__version__ = "dry"
bfloat16, float32, float64, uint8 = 2, 4, 8, 1
class Tensor:
    def __init__(self, count, size, device=None):
        self.count, self.size, self.held, self.value = count, size, device == "cuda", 1.0
        if self.held:
            cuda.begin()
            rc = cuda.lib.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(count * size))
            if rc:
                raise RuntimeError("CUDA out of memory: %d" % rc)
    def add_(self, x): return self
    def mul_(self, x): return self
    def copy_(self, x): cuda.busy(0.0006); return self
    def sum(self, dtype=None): time.sleep(0.003); return self
    def item(self): return 3.0
    def split(self, n): return [self]
    def cpu(self): return self
    def __getitem__(self, i): return self
    def __matmul__(self, x): return self
def randn(a, b, device=None, dtype=float32): return Tensor(a * b, dtype, device)
def empty(n, dtype=float32, device=None): return Tensor(n, dtype, device)
def arange(n, device=None, dtype=float32): return Tensor(n, dtype, device)
def zeros(n, device=None, dtype=float32): return Tensor(n, dtype, device)
ones = zeros
def eye(n, device=None): return Tensor(n * n, 4, device)
def empty_like(t): return Tensor(t.count, t.size, "cuda" if t.held else None)
def allclose(a, b, atol=0): return True
def matmul(a, b, out=None): cuda.busy(0.0016)
