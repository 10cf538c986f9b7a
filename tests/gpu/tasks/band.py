# band.py BEGIN SECONDS: copies in the GPU's memory: "GBPS figure"
import sys, time, torch
a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
b = torch.empty_like(a)
begin, length = float(sys.argv[1]), float(sys.argv[2])
b.copy_(a)
torch.cuda.synchronize()
while time.time() < begin:
    time.sleep(0.01)
k, t = 0, time.time()
while time.time() - t < length:
    for _ in range(8):
        b.copy_(a)
    torch.cuda.synchronize()
    k += 8
print("GBPS %.1f" % (2 * k * (1 << 30) / (time.time() - t) / 1e9), flush=True)
