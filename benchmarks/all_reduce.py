"""One of two processes that add up 64 MB again and again: the first one prints the median of the seconds.

tenfold launch --nproc-per-node 2 -m benchmarks.all_reduce tenfold
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time

RUNS, NUMBERS = 15, 16 * 1024 * 1024


def main(package: str) -> None:
    library = importlib.import_module(package)
    distributed = importlib.import_module(f"{package}.distributed")
    distributed.init_process_group("gloo")
    x = library.ones(NUMBERS)
    seconds = []
    for _ in range(RUNS + 2):
        distributed.barrier()
        start = time.perf_counter()
        distributed.all_reduce(x)
        seconds.append(time.perf_counter() - start)
    assert x[:2].tolist() == [2.0 ** len(seconds)] * 2
    if distributed.get_rank() == 0:
        print(statistics.median(seconds[2:]))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
