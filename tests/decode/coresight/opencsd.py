"""The packet lister of OpenCSD (Debian: libopencsd-bin), as a judge of frames: what it says each trace source sent."""

import re
import subprocess
from pathlib import Path

LISTER = "trc_pkt_lister"
_LINE = re.compile(rb"ID_DATA\[(0x[0-9a-f]+|\?\?\?\?)\]; ([0-9a-f ]+)")
FREE_ID = 0x6F
"""The ID of the only source that the lister knows: frames must not have it, as it stops at a source that sends
nothing. It prints the bytes of all others, too.
"""

_SNAPSHOT = """[snapshot]
version=1.0
[device_list]
device0=cpu_0.ini
device1=stm.ini
[trace]
metadata=trace.ini
"""
_TRACE = """[trace_buffers]
buffers=buffer0
[buffer0]
name=ETB_0
file=cstrace.bin
format=coresight
[source_buffers]
STM_0=ETB_0
"""


def _write_snapshot(folder: Path, data: bytes) -> None:
    """Write a snapshot as the lister reads it. It needs a source: an STM, whose ID is in STMTCSR."""
    (folder / "snapshot.ini").write_text(_SNAPSHOT)
    (folder / "trace.ini").write_text(_TRACE)
    (folder / "cpu_0.ini").write_text("[device]\nname=cpu_0\nclass=core\ntype=Cortex-A53\n[regs]\nPC(size:64)=0\n")
    source = f"[device]\nname=STM_0\nclass=trace_source\ntype=STM\n[regs]\nSTMTCSR(0x3A0)=0x00{FREE_ID:02X}0007\n"
    (folder / "stm.ini").write_text(source)
    (folder / "cstrace.bin").write_bytes(data)


def unpacked(folder: Path, data: bytes, *options: str) -> dict[int, bytes]:
    """Return the bytes of each ID as the lister takes *data* apart. *options*: "-tpiu", "-tpiu_hsync"."""
    folder.mkdir(exist_ok=True)
    _write_snapshot(folder, data)
    command = [LISTER, "-ss_dir", str(folder), "-src_name", "ETB_0", "-o_raw_unpacked", "-logstdout", *options]
    told = subprocess.run(command, capture_output=True, check=True, timeout=600, cwd=folder).stdout
    found: dict[int, list[bytes]] = {}
    for atb_id, text in _LINE.findall(told):
        found.setdefault(int(atb_id, 16) if atb_id[:1] == b"0" else -1, []).append(bytes.fromhex(text.decode()))
    return {atb_id: b"".join(parts) for atb_id, parts in found.items()}
