"""A program that has much read by processes which are killed just before, again and again, and prints what is read."""

import os
import signal
import sys
from typing import Any

from rvtrace_gdb.console.captures import processes

ROUNDS, READERS = 8, 5


class Much:
    """A reader that is larger than a pipe holds."""

    reads_sources = False
    trace: Any = None

    def __init__(self, number: int) -> None:
        self.data, self.number = bytes(1 << 20), number

    def with_trace(self, trace: Any) -> "Much":
        return self

    def read(self, progress: Any = None) -> int:
        return self.number


def main() -> None:
    start, killed = processes._ReadingProcess.__init__, list[int]()

    def dying(self: processes._ReadingProcess) -> None:
        start(self)
        if not killed:
            killed.append(self.process.pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    processes._ReadingProcess.__init__ = dying  # type: ignore[method-assign]
    for _ in range(ROUNDS):
        killed.clear()
        readers = [Much(number) for number in range(READERS)]
        sys.stdout.write(f"{list(processes.by_processes(readers, 2))}\n")


if __name__ == "__main__":
    main()
