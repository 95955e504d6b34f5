"""How fast QEMU is with a recorder, as a share of plain QEMU: `python -m benchmarks.targets.qemu [ROUNDS]`."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rvtrace_gdb.session.program import LoadedProgram
from rvtrace_gdb.session.sources.options import trace_request
from rvtrace_gdb.session.sources.qemu.encoder import encoder_for, encoder_options
from rvtrace_gdb.session.sources.qemu.records import HartRecords, RecordedCode
from rvtrace_gdb.transport.qemu import launch
from rvtrace_gdb.transport.qemu.recorder import QMP, Ring
from tests.transport.qemu.machine import arguments, ticks

BATCH = 1 << 14  # words
ENCODERS: dict[str, dict[str, Any]] = {
    "N-Trace HTM": {},
    "N-Trace HTM, times": {"timestamps": True},
    "N-Trace HTM, returns": {"implicit_return": "on"},
    "N-Trace BTM": {"btm": True},
    "E-Trace": {"format": "etrace"},
}


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


def steady(
    folder: Path, rounds: int, source: str, *options: str, kernel: str = "1", icount: bool = False
) -> tuple[float, float]:
    """Instructions a round, and millions of them a second into a capture, without what it takes to begin. *options*:
    of `rvtrace qemu`.
    """
    counts, times = [], []
    for many in (100, 100 + rounds):
        elf = ticks(folder, "rv64imac_zicsr", "-DQUIET", f"-DROUNDS={many}")
        begin = time.monotonic()
        words = ["qemu", "--json", "--source", source, *options, "-o", str(folder / "all.rvt"), "--elf", str(elf), "--"]
        command = [sys.executable, "-m", "rvtrace_gdb", *words, *arguments(elf, icount=icount)]
        environment = os.environ | {"RVTRACE_KERNEL": kernel}
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=environment
        )
        times.append(time.monotonic() - begin)
        counts.append(json.loads(done.stdout.splitlines()[-1])["instructions"])
    more = counts[1] - counts[0]
    return more / rounds, more / (times[1] - times[0]) / 1e6


def reader(elf: Path) -> Iterator[tuple[str, float, float]]:
    """Of each encoder: its name, and millions of instructions a second of CPU time from the ring to bytes, with the
    kernel and without.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        program, *options = arguments(elf, icount=False)
        plugin = launch.compiled_plugin(os.environ)
        qemu = launch.find_qemu(program, options)
        command = launch.plugin_command(qemu, options, plugin, Path(name), words=1 << 23, stalling=False)
        seconds([f"{word},record=on" if word.startswith(str(plugin)) else word for word in command])
        with closing(Ring.open(Path(name))) as ring:
            for what, chosen in ENCODERS.items():
                rates, made = [], []
                for kernel in "10":
                    with patch.dict(os.environ, RVTRACE_KERNEL=kernel):
                        rate, data = encoded(ring, elf, chosen)
                    rates.append(rate)
                    made.append(data)
                assert made[0] == made[1], "the kernel encodes something else"
                yield what, rates[0], rates[1]


def encoded(ring: Ring, elf: Path, chosen: dict[str, Any]) -> tuple[float, bytes]:
    """What hart 0 ran, by the encoder with these options of `trace start`."""
    image = LoadedProgram(str(elf)).image()
    options, _ = encoder_options(trace_request(chosen), image.xlen, chosen)
    code = RecordedCode(ring, image)
    records, encoder = HartRecords(code), encoder_for(options)
    out = bytearray()
    begin = time.process_time()
    for at in range(0, ring.written(0), BATCH):
        out += encoder.feed(records.feed(ring.words(0, at, min(at + BATCH, ring.written(0)))))
    spent = time.process_time() - begin
    code.close()
    return encoder.instructions / spent / 1e6, bytes(out)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        each, capture = steady(folder, 40_000, "plugin")
        _, python = steady(folder, 4000, "plugin", kernel="0")
        _, turns = steady(folder, 40_000, "plugin", icount=True)
        _, etrace = steady(folder, 20_000, "plugin", "--etrace")
        _, log = steady(folder, 1000, "log", icount=True)
        elf = ticks(folder, "rv64imac_zicsr", "-DQUIET", f"-DROUNDS={rounds}")
        total = each * rounds / 1e6
        plain = total / seconds(arguments(elf, icount=False))
        rates = (
            ("plugin, switched off", total / with_plugin(elf, recording=False)),
            ("plugin, into the ring", total / with_plugin(elf, recording=True)),
            ("plugin, into a capture", capture),
            ("  without the kernel", python),
            ("  with -icount", turns),
            ("  E-Trace", etrace),
            ("log, into a capture", log),
        )
        print(f"{total:.0f} M instructions, in millions a second")
        print(f"plain QEMU              {plain:8.1f}")
        for what, rate in rates:
            print(f"{what:24}{rate:8.2f}   {rate / plain:.4f} of plain")
        print("from the ring to bytes, CPU time: with the kernel, without, ratio")
        short = ticks(folder, "rv64imac_zicsr", "-DQUIET", "-DROUNDS=10000")
        for what, kernel, python in reader(short):
            print(f"{what:24}{kernel:8.2f} {python:8.2f} {kernel / python:8.1f}", flush=True)


if __name__ == "__main__":
    main()
