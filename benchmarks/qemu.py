"""How fast QEMU is with a recorder, as a share of plain QEMU: `python -m benchmarks.qemu [ROUNDS]`."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rvtrace_gdb.transport.qemu import launch
from rvtrace_gdb.transport.qemu.recorder import QMP
from tests.transport.qemu.machine import arguments, ticks


def seconds(command: Sequence[str]) -> float:
    begin = time.monotonic()
    subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=600)
    return time.monotonic() - begin


def with_plugin(elf: Path, *, recording: bool) -> float:
    """Into a ring that goes round: nobody waits."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        program, *options = arguments(elf, icount=False)
        qemu = launch.find_qemu(program, options)
        plugin = launch.compiled_plugin(os.environ)
        command = launch.plugin_command(qemu, options, plugin, Path(folder), words=1 << 20, stalling=False)
        if recording:
            command = [f"{word},record=on" if word.startswith(str(plugin)) else word for word in command]
        assert f"unix:{folder}/{QMP}" in command[-1]
        return seconds(command)


def steady(folder: Path, rounds: int, source: str) -> tuple[float, float]:
    """Instructions a round, and millions of them a second into a capture, without what it takes to begin."""
    counts, times = [], []
    for many in (100, 100 + rounds):
        elf = ticks(folder, "rv64imac_zicsr", "-DQUIET", f"-DROUNDS={many}")
        begin = time.monotonic()
        words = ["qemu", "--json", "--source", source, "-o", str(folder / "all.rvt"), "--elf", str(elf), "--"]
        command = [sys.executable, "-m", "rvtrace_gdb", *words, *arguments(elf)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        times.append(time.monotonic() - begin)
        counts.append(json.loads(done.stdout.splitlines()[-1])["instructions"])
    more = counts[1] - counts[0]
    return more / rounds, more / (times[1] - times[0]) / 1e6


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        each, capture = steady(folder, 4000, "plugin")
        _, log = steady(folder, 1000, "log")
        elf = ticks(folder, "rv64imac_zicsr", "-DQUIET", f"-DROUNDS={rounds}")
        total = each * rounds / 1e6
        plain = total / seconds(arguments(elf, icount=False))
        rates = (
            ("plugin, switched off", total / with_plugin(elf, recording=False)),
            ("plugin, into the ring", total / with_plugin(elf, recording=True)),
            ("plugin, into a capture", capture),
            ("log, into a capture", log),
        )
        print(f"{total:.0f} M instructions, in millions a second")
        print(f"plain QEMU              {plain:8.1f}")
        for what, rate in rates:
            print(f"{what:24}{rate:8.2f}   {rate / plain:.4f} of plain")


if __name__ == "__main__":
    main()
