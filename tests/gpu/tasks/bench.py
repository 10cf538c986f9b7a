# bench.py BEGIN SECONDS [greedy]: a bf16 matrix product from BEGIN on: "TFLOPS figure, multiprocessors, free MiB, seconds that it came late"
import sys, time, torch
n = 8192
begin, length, deep = float(sys.argv[1]), float(sys.argv[2]), 64 if "greedy" in sys.argv else 8
a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
c = torch.empty_like(a)
torch.matmul(a, b, out=c)
torch.cuda.synchronize()
late = max(0.0, time.time() - begin)
while time.time() < begin:          # warm, as the others are
    torch.matmul(a, b, out=c)
    torch.cuda.synchronize()
k, t = 0, time.time()
while time.time() - t < length:
    for _ in range(deep):
        torch.matmul(a, b, out=c)
    torch.cuda.synchronize()
    k += deep
took = time.time() - t
print("TFLOPS %.2f %d %d %.1f" % (2 * n ** 3 * k / took / 1e12, torch.cuda.get_device_properties(0).multi_processor_count, torch.cuda.mem_get_info()[0] >> 20, late), flush=True)
if "greedy" in sys.argv:            # those who are measured beside it shall not be alone at their end
    while time.time() - t < length + 2:
        torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
