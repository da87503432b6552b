"""NumPy's side of the bench beside this file: reads expressions, a line each, and answers each with the shortest time of some runs, in seconds."""

import sys
import time

import numpy as np

N = 1_000_000
rng = np.random.default_rng(7)
x = (rng.random(N, dtype=np.float32) * 0.98 + 0.01).astype(np.float32)
y = (rng.random(N, dtype=np.float32) * 0.98 + 0.01).astype(np.float32)
z = (x - np.float32(0.5)) * 8
i = rng.integers(0, 1000, N, dtype=np.int32)
j = rng.integers(1, 30, N, dtype=np.int32)
m = x.reshape(1000, 1000)
n = y.reshape(1000, 1000)
v = x[:1000].copy()
b = z > 0
t = x > 0
k = rng.integers(0, N, N, dtype=np.int32)
s = np.sort(x)
d = x.astype(np.float64)

print(np.__version__, flush=True)
for line in sys.stdin:
    run = eval("lambda: " + line)
    run()
    best, begin = float("inf"), time.perf_counter()
    while True:
        start = time.perf_counter()
        run()
        end = time.perf_counter()
        best = min(best, end - start)
        if end - begin > 0.02:
            break
    print(best, flush=True)
