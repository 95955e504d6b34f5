"""The device trees of tests/data/device-tree, compiled by dtc."""

import subprocess
from functools import cache
from pathlib import Path

from rvtrace_gdb.session.description import dtb
from rvtrace_gdb.session.description.dtb import Node

FOLDER = Path(__file__).resolve().parents[2] / "data" / "device-tree"
NAMES = ("per_hart", "qemu_etrace", "sifive_0", "clusters", "xuantie", "xuantie_small", "spacemit_k3")


def compiled(source: str) -> bytes:
    """The DTB of a device tree's source."""
    command = ["dtc", "-q", "-I", "dts", "-O", "dtb"]
    return subprocess.run(command, input=source.encode(), capture_output=True, check=True).stdout


def source(name: str) -> str:
    return (FOLDER / f"{name}.dts").read_text()


@cache
def blob(name: str) -> bytes:
    return compiled(source(name))


def tree(name: str, *changes: tuple[str, str]) -> Node:
    """One of them, with text of its source replaced."""
    text = source(name)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return dtb.read(compiled(text), f"{name}.dtb")
