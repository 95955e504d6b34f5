"""What the header of a waveform file says: the unit of its times, and whether rvtrace has written it.

VCD: IEEE 1364. FST: the block `header` with which each file begins, as the converters of GTKWave write it.
"""

import re
import struct
from typing import BinaryIO, NamedTuple

_MOST = 1 << 20
"""Bytes in which the header of a VCD ends, or nothing is known of it: designs have many signals."""
_OURS = b"rvtrace"
_NUMBERED = b"times are numbers of instructions"
_TIMESCALE = re.compile(rb"\$timescale\s+(10{0,2})\s*([munpf]?s)\s+\$end")
_EXPONENTS = {b"s": 0, b"ms": -3, b"us": -6, b"ns": -9, b"ps": -12, b"fs": -15}
_FST_HEADER = struct.Struct(">BQQQ")
_FST_SCALE, _FST_WRITER = 73, 128
"""Where the exponent of the unit is in an FST, and the size of the writer's name behind it."""


class WaveformFile(NamedTuple):
    """*exponent*: a unit of the file's times is 10 to this power seconds, None if that is not known. *is_ours*: rvtrace
    has written the file; *is_numbered*: with numbers of instructions as times. *end*: its last time, if the header has
    it.
    """

    exponent: int | None = None
    is_ours: bool = False
    is_numbered: bool = False
    end: int | None = None


def waveform_file(path: str) -> WaveformFile:
    """Return what is known of a file, of other forms nothing. Raises OSError, ValueError."""
    with open(path, "rb") as file:
        return _fst(file) or _vcd(file)


def _fst(file: BinaryIO) -> WaveformFile | None:
    data = file.read(_FST_SCALE + 1 + _FST_WRITER)
    if len(data) < _FST_SCALE + 1 + _FST_WRITER or data[0] != 0 or _FST_HEADER.unpack_from(data)[1] != 329:
        return None
    exponent = data[_FST_SCALE] - (256 if data[_FST_SCALE] > 127 else 0)
    return WaveformFile(
        exponent, data[_FST_SCALE + 1 :].startswith(_OURS), end=_FST_HEADER.unpack_from(data)[3]
    )


def _vcd(file: BinaryIO) -> WaveformFile:
    file.seek(0)
    header = file.read(_MOST).partition(b"$enddefinitions")[0]
    scale = _TIMESCALE.search(header)
    exponent = None if scale is None else _EXPONENTS[scale[2]] + len(scale[1]) - 1
    version = re.search(rb"\$version\s+(\S+)", header)
    is_ours = version is not None and version[1] == _OURS
    return WaveformFile(exponent, is_ours, is_ours and _NUMBERED in header)
