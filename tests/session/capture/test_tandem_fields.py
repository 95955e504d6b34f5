"""Tandem traces in capture files, as docs/capture-format.md has them."""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from rvtrace_gdb.decode.tandem.protocol import DIALECTS, TandemParameters
from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.file import dump, parse
from rvtrace_gdb.session.capture.model import Capture, CapturedPort, CapturedTandem

RV32 = TandemParameters(32, 32, 34, 32, DIALECTS["two-pc"], supervisor=False)
PORTS = (
    CapturedTandem(3, CapturedPort("tandem3", RV32), b"\x01\x02" * 9, wrapped=True),
    CapturedTandem(4, CapturedPort("other", TandemParameters()), b""),
)
CAPTURE = Capture("2026-01-01T00:00:00Z", "rvtrace 1", "board", 32, None, (), (), (), tandem=PORTS)


def members(capture: Capture = CAPTURE) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(dump(capture))) as container:
        return {name: container.read(name) for name in container.namelist()}


def edited(edit: Callable[[dict[str, Any]], object]) -> bytes:
    stored = members()
    document = json.loads(stored["capture.json"])
    edit(document)
    stored["capture.json"] = json.dumps(document).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as container:
        for name, data in stored.items():
            container.writestr(name, data)
    return buffer.getvalue()


def test_as_documented() -> None:
    stored = members()
    assert list(stored) == ["capture.json", "tandem/0.tvt", "tandem/1.tvt"]
    assert stored["tandem/0.tvt"] == b"\x01\x02" * 9
    document = json.loads(stored["capture.json"])
    assert document["version"] == 5
    assert document["tandem"][0] == {
        "name": "tandem3", "hart": 3, "dialect": "two-pc", "xlen": 32, "flen": 32, "mlen": 34, "eaddr": 32,
        "supervisor": False, "member": "tandem/0.tvt", "size": 18, "wrapped": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dialect", "Flute"), ("dialect", None), ("dialect", 3), ("xlen", 16), ("xlen", "64"), ("flen", 16),
        ("flen", 128), ("mlen", 16), ("mlen", 48), ("mlen", -1), ("eaddr", 56), ("eaddr", 1 << 70), ("supervisor", 1),
        ("supervisor", None), ("wrapped", "no"), ("hart", -1), ("name", 1), ("size", "18"), ("member", None),
    ],
)  # fmt: skip
def test_fields_that_make_no_sense(key: str, value: object) -> None:
    content = edited(lambda d: d["tandem"][0].update({key: value}))
    # 56 bits are 7 bytes, which no encoder sends; 48 are 6
    with pytest.raises(CaptureError, match=rf"^x\.rvt: is damaged: capture\.json has no usable tandem\[0\]\.{key}$"):
        parse(content, "x.rvt")


@pytest.mark.parametrize(("value", "line"), [
    ({}, "is damaged: capture.json has no usable tandem"),
    ([1], "is damaged: capture.json has no usable tandem"),
    (None, "is damaged: capture.json has no usable tandem"),
])  # fmt: skip
def test_no_list(value: object, line: str) -> None:
    with pytest.raises(CaptureError) as caught:
        parse(edited(lambda d: d.update(tandem=value)), "x.rvt")
    assert str(caught.value) == f"x.rvt: {line}"
