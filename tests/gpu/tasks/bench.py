# bench.py BEGIN SECONDS [greedy] [SIZE...]: a bf16 matrix product from BEGIN on: "TFLOPS figure, multiprocessors, free MiB, seconds that it came late" of 8192; of each SIZE, in turn
# and a second after the one before, "SIZE figure"
import sys, time, torch
begin, length, deep = float(sys.argv[1]), float(sys.argv[2]), 64 if "greedy" in sys.argv else 8
def product(n):
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    c = torch.empty_like(a)
    torch.matmul(a, b, out=c)
    torch.cuda.synchronize()
    return a, b, c
def busy_until(when, a, b, c):      # warm, as the others are
    while time.time() < when:
        torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
def measure(n, deep, a, b, c):
    k, t = 0, time.time()
    while time.time() - t < length:
        for _ in range(deep):
            torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
        k += deep
    return 2 * n ** 3 * k / (time.time() - t) / 1e12
x = product(8192)
late = max(0.0, time.time() - begin)
busy_until(begin, *x)
figure = measure(8192, deep, *x)
print("TFLOPS %.2f %d %d %.1f" % (figure, torch.cuda.get_device_properties(0).multi_processor_count, torch.cuda.mem_get_info()[0] >> 20, late), flush=True)
if "greedy" in sys.argv:            # those who are measured beside it shall not be alone at their end
    busy_until(begin + length + 2, *x)
for i, n in enumerate(int(w) for w in sys.argv[3:] if w.isdigit()):
    x = product(n)
    busy_until(begin + (i + 1) * (length + 1), *x)
    print("SIZE%d %.2f" % (n, measure(n, 8 if n > 4096 else 64, *x)), flush=True)
