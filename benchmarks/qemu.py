"""How fast QEMU is with a recorder, as a share of plain QEMU: `python -m benchmarks.qemu [ROUNDS]`."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.qemu.machine import arguments, recorded, ticks
from transport.qemu import build, launch
from transport.qemu.ring import QMP


def seconds(command: Sequence[str]) -> float:
    begin = time.monotonic()
    subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=600)
    return time.monotonic() - begin


def with_plugin(elf: Path, *, recording: bool) -> float:
    """Into a ring that goes round: nobody waits."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        program, *options = arguments(elf, icount=False)
        qemu = launch.find(program, options)
        plugin = build.plugin(os.environ)
        command = launch.recorded_by_plugin(qemu, options, plugin, Path(folder), words=1 << 20, stalling=False)
        if recording:
            command = [f"{word},record=on" if word.startswith(str(plugin)) else word for word in command]
        assert f"unix:{folder}/{QMP}" in command[-1]
        return seconds(command)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, many = 200, rounds
        options = ("-DQUIET",)
        short = ticks(folder, "rv64imac_zicsr", *options, f"-DROUNDS={few}")
        begin = time.monotonic()
        found, _ = recorded(short, folder)
        streaming = time.monotonic() - begin
        each = found.histories[0].instructions / few
        begin = time.monotonic()
        recorded(short, folder, "--source", "log")
        log = time.monotonic() - begin
        long = ticks(folder, "rv64imac_zicsr", *options, f"-DROUNDS={many}")
        total = each * many
        plain = seconds(arguments(long, icount=False))
        print(f"{total / 1e6:.0f} M instructions, in millions a second")
        print(f"plain QEMU              {total / plain / 1e6:8.1f}")
        for name, taken in (("plugin, switched off", with_plugin(long, recording=False)),
                            ("plugin, into the ring", with_plugin(long, recording=True))):  # fmt: skip
            print(f"{name:24}{total / taken / 1e6:8.1f}   {plain / taken:.2f} of plain")
        print(f"{'plugin, into a capture':24}{each * few / streaming / 1e6:8.2f}   with starting Python")
        print(f"{'log, into a capture':24}{each * few / log / 1e6:8.2f}   with starting Python")


if __name__ == "__main__":
    main()
