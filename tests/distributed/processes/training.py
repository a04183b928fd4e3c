"""The GPT over two processes of four devices each."""

import sys

import tenfold.distributed as dist
from tests.distributed import gpt

dist.init_process_group("gloo")
for way in sys.argv[1:]:
    gpt.compare(way)
    print("trained", way, flush=True)
dist.destroy_process_group()
print("passed")
