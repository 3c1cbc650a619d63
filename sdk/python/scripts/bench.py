"""How long `sandbox.run("true")` takes, beside the emptiest request: `python scripts/bench.py`.

It uses whichever server a program would use: see `docs/python-sdk.md`.
"""

from __future__ import annotations

import argparse
import time
from typing import Callable, List

from zareba import Sandbox

WARM_UP = 50


def measured(deed: Callable[[], object], rounds: int) -> List[float]:
    for _ in range(WARM_UP):
        deed()
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        deed()
        times.append(time.perf_counter() - begun)
    return sorted(times)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=500)
    rounds = arguments.parse_args().rounds
    with Sandbox.create() as sandbox:
        deeds = {
            "GET /v1/health": sandbox.client.health,
            'sandbox.run("true")': lambda: sandbox.run("true").check(),
            "sandbox.files.read": lambda: sandbox.files.read("/etc/hostname"),
        }
        for name, deed in deeds.items():
            times = measured(deed, rounds)
            p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
            print(f"{name:22} p50 {p50 * 1000:6.2f} ms   p99 {p99 * 1000:6.2f} ms")


if __name__ == "__main__":
    main()
