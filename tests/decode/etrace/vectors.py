"""The reference vectors of E-Trace as a decoder sees them: what it is told, what it is given, and what ran.

Layout of the files: README.md beside them; options and packets as `etrace_encoder_vectors` reads them.
"""

import gzip
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rvtrace_gdb.decode.etrace.options import Options, Parameters, TrapHandlers
from tests.decode.etrace.encoder_vectors import PROGRAMS, ROOT, Vector, image, vector

__all__ = [
    "OPTIONS",
    "PROGRAMS",
    "ROOT",
    "expected",
    "fingerprint",
    "framed",
    "image",
    "listed",
    "official",
    "options",
    "parameters_in",
    "vector",
]

OPTIONS = tuple(f"o{number:02}" for number in range(1, 16))


def options(found: Vector) -> Options:
    """What a decoder must be told of a stream; the trap handlers where their addresses are not in it."""
    told = found.what["trap_vectors"] or ()
    handlers = {(v["cause"], bool(v["interrupt"])): int(v["handler"], 16) for v in told}
    return replace(found.options, trap_handlers=TrapHandlers(handlers=handlers))


@cache
def expected(program: str, option: str) -> list[int]:
    """What ran."""
    return listed(ROOT / program / vector(program, option).what["pcs_file"])


def listed(path: Path) -> list[int]:
    """A list of addresses, hexadecimal, one a line."""
    data = path.read_bytes()
    return [int(line, 16) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).split()]


def fingerprint(addresses: Iterable[int]) -> str:
    """The SHA-256 the vectors give: of one hexadecimal number a line."""
    return hashlib.sha256(b"".join(b"%x\n" % pc for pc in addresses)).hexdigest()


def framed(packets: Iterable[bytes]) -> bytes:
    """Packets in e-trace-encap, of one source and without timestamps: each has its length before it."""
    return b"".join(bytes([len(packet)]) + packet for packet in packets)


def official() -> list[Path]:
    """The folders of the official encoder model's streams."""
    return sorted(path.parent for path in (ROOT / "reference").glob("itype*/*/hw.scf"))


def parameters_in(path: Path) -> Parameters:
    """The parameters in an hw.scf."""
    rows = (line.partition("#")[0].strip().partition("=") for line in path.read_text().splitlines())
    told = {name.strip().removesuffix("_p"): int(value) for name, equals, value in rows if equals}
    if told.get("nocontext"):
        told["context_width"] = 0
    if told.get("notime"):
        told["time_width"] = 0
    known: dict[str, Any] = {name: told[name] for name in told.keys() & vars(Parameters()).keys()}
    return Parameters(**known)
