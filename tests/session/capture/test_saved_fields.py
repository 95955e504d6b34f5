"""What is saved of a target, in capture.json: registers, memory, what a debugger wrote; and the user's notes."""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.file import dump, parse
from tests.session.capture.test_file import description
from tests.session.captures import WITH_VALUES


def with_values(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The capture that has values, with another description."""
    with zipfile.ZipFile(io.BytesIO(dump(WITH_VALUES))) as container:
        members = {name: container.read(name) for name in container.namelist()}
    document = json.loads(members["capture.json"])
    change(document)
    members["capture.json"] = json.dumps(document).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as result:
        for name, data in members.items():
            result.writestr(name, data)
    return buffer.getvalue()


def test_values() -> None:
    """As docs/capture-format.md has them."""
    content = dump(WITH_VALUES)
    assert parse(content, "x.rvt") == WITH_VALUES
    described = description(content)
    assert described["version"] == 1, "a reader may ignore them"
    assert described["registers"][0] == {
        "hart": 0, "at": "start", "pc": "0x80000000", "at_entry": True, "privilege": 3,
        "values": {"0x300": "0x1800", "0x1002": "0x80008000", "0x1020": "0x7"},
    }  # fmt: skip
    assert described["memory"][1] == {"at": "stop", "address": "0x80000000", "member": "memory/1.bin", "size": 64}
    assert described["written"][0] == {
        "hart": 0, "pc": "0x80000010", "values": {"0x100a": "0x3"}, "unknown": False,
        "memory": [{"address": "0x80001000", "member": "written/0/0.bin", "size": 2}],
    }  # fmt: skip
    assert described["written"][2]["halts"] == 5 and described["written"][3]["pc"] is None
    assert described["written"][2]["breakpoints"] == [
        {"address": "0x80000040", "size": 2}, {"address": "0x80000044", "size": 4},
    ]  # fmt: skip
    assert described["place_notes"] == [
        {"id": 2, "hart": 0, "number": 17, "pc": "0x80000040", "text": "here"},
        {"id": 1, "hart": 0, "number": None, "pc": None, "text": "ä gap"},
    ]
    assert described["ranges"][0] == {
        "name": "sram", "address": "0x80000000", "size": "0x100000", "kind": "ram", "private": [0], "dma": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "field", "value"),
    [
        ("registers", "at", "later"), ("registers", "pc", 5), ("registers", "at_entry", 1),
        ("registers", "values", None), ("registers", "privilege", 8),
        ("memory", "at", 1), ("memory", "size", 15), ("memory", "address", "0xfffffffffffffff8"),
        ("written", "unknown", None), ("written", "memory", {}), ("written", "halts", -1),
        ("written", "breakpoints", [{"address": "0x0", "size": 0}]),
        ("ranges", "kind", "flash"), ("ranges", "size", "0x0"), ("ranges", "address", "0xfffffffffffffff8"),
        ("ranges", "private", [True]), ("ranges", "dma", 0),
        ("place_notes", "id", 1), ("place_notes", "id", 0), ("place_notes", "number", 0), ("place_notes", "pc", 5),
        ("place_notes", "text", ""), ("place_notes", "text", "x" * 4097), ("place_notes", "hart", -1),
    ],
)  # fmt: skip
def test_values_that_make_no_sense(key: str, field: str, value: object) -> None:
    with pytest.raises(CaptureError, match=r"^x\.rvt: is damaged: ") as caught:
        parse(with_values(lambda document: document[key][0].update({field: value})), "x.rvt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", ["0x1040", "0x00001", "1", "x1"])
def test_registers_that_are_none(number: str) -> None:
    with pytest.raises(CaptureError, match=r"has no usable registers\[0\]\.values\."):
        parse(with_values(lambda document: document["registers"][0]["values"].update({number: "0x0"})), "x.rvt")


def test_endlessly_many_ranges_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"capture\.json has no usable ranges$"):
        parse(with_values(lambda document: document.update(ranges=document["ranges"] * 129)), "x.rvt")
