"""Runs one model from four threads, and prints what each step of a run costs."""

import sys
from concurrent.futures import ThreadPoolExecutor

import nnhal

model = nnhal.load(sys.argv[1], threads=1)
inputs = model.random_inputs()
with ThreadPoolExecutor(4) as pool:
    results = list(pool.map(lambda _: model(*inputs)[0].tobytes(), range(100)))
print(f"{len(results)} runs, {len(set(results))} different result")

for record in model.profile(*inputs):
    print(f"{record['time_us']:8.1f} us  {record['operator']:20} {record['kernel']}")
