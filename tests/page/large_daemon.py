"""The HTTP server of leaf 0 in a fabric of 64 spines and 512 leaves, as a process of its own.

It prints its port; for each line that it reads, a spine advertises another load of a link.
"""

import asyncio
import sys

from bench.router import fabrics
from tests.api.watched import Large, serving


async def main() -> None:
    """Serve until the standard input ends."""
    big = Large(64, 512)
    loop = asyncio.get_running_loop()
    async with serving(big.context) as port:
        print(port, flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            spine, leaf, part = line.split()
            ends = fabrics.spine(int(spine)), fabrics.leaf(int(leaf))
            big.load(*ends, float(part) * fabrics.RATE, fabrics.RATE)


asyncio.run(main())
