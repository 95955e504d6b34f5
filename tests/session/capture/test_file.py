"""The capture file: what is saved is what is loaded, and damage of any kind is one clear error."""

import io
import json
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.trap_cause import TrapRegisters
from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.file import dump, load, parse, save
from rvtrace_gdb.session.capture.model import (
    BranchPort,
    Capture,
    CapturedBranches,
    CapturedThread,
    CapturedTrap,
    ElfIdentity,
    PlacedElf,
)
from rvtrace_gdb.support.errors import Cancelled
from rvtrace_gdb.support.system import BadLimit
from tests.helpers.amounts import long_only, some_of, sparse
from tests.session.capture.test_tandem_fields import PORTS
from tests.session.captures import FULL, SMALL, WITH_RECORDS, WITH_VALUES, captures

CONTENT = dump(FULL)


def description(content: bytes = CONTENT) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(content)) as container:
        found: dict[str, Any] = json.loads(container.read("capture.json"))
    return found


def repacked(text: bytes | None = None, drop: str = "", other: dict[str, bytes] | None = None) -> bytes:
    """The capture taken apart and put together differently, each checksum right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(CONTENT)) as container, zipfile.ZipFile(buffer, "w") as result:
        for name in container.namelist():
            data = (other or {}).get(name, container.read(name))
            if name != drop:
                result.writestr(name, text if text is not None and name == "capture.json" else data)
    return buffer.getvalue()


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = description()
    change(document)
    return repacked(json.dumps(document).encode())


@given(captures())
@settings(deadline=None)
def test_what_is_saved_is_loaded(capture: Capture) -> None:
    assert parse(dump(capture), "x.rvt") == capture


def test_devices_and_pipes_are_written_to_as_they_are(tmp_path: Path) -> None:
    """/dev/null says of itself that it can seek; a pipe cannot."""
    save(FULL, "/dev/null")
    with pytest.raises(CaptureError, match=r"^/dev/full: cannot be written: No space left on device$"):
        save(FULL, "/dev/full")
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    save(FULL, tmp_path / "fifo")
    assert os.read(reader, 1 << 16) == dump(FULL)
    os.close(reader)


def test_any_zip_tool_can_look_inside() -> None:
    with zipfile.ZipFile(io.BytesIO(CONTENT)) as container:
        assert container.testzip() is None
        names = ["capture.json", "sinks/0.bin", "code/0.bin", "code/1.bin", "images/0/0.bin", "images/0/1.bin"]
        assert container.namelist() == names
        assert container.read("sinks/0.bin") == SMALL.sinks[0].data
    assert description()["encoders"][0]["protocol"] == "N-Trace"


@pytest.mark.parametrize(
    ("key", "value"), [("ctr_version", "2.0"), ("xlen", 16), ("depth", 17), ("size", 47), ("size", 24 * 17), ("pc", 5),
                       ("privilege", 8), ("begin", 5)],
)  # fmt: skip
def test_records_that_make_no_sense(key: str, value: object) -> None:
    with zipfile.ZipFile(io.BytesIO(dump(WITH_RECORDS))) as container:
        members = {name: container.read(name) for name in container.namelist()}
    document = json.loads(members["capture.json"])
    document["records"][0][key] = value
    members["capture.json"] = json.dumps(document).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as result:
        for name, data in members.items():
            result.writestr(name, data)
    with pytest.raises(CaptureError, match=rf"x\.rvt: is damaged: capture\.json has no usable records\[0\]\.{key}"):
        parse(buffer.getvalue(), "x.rvt")


@given(st.data())
@settings(max_examples=some_of(1500), deadline=None)
def test_a_flipped_byte_is_noticed_or_harmless(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(CONTENT) - 1))
    flip = data.draw(st.integers(1, 255))
    _sound_or_refused(CONTENT[:at] + bytes([CONTENT[at] ^ flip]) + CONTENT[at + 1 :])


def test_every_single_bit_flip_is_noticed_or_harmless() -> None:
    for bit in range(0, 8 * len(CONTENT), sparse(1)):  # each bit of some bytes, some bits of each
        damaged = bytearray(CONTENT)
        damaged[bit // 8] ^= 1 << bit % 8
        _sound_or_refused(bytes(damaged))


def test_every_truncation_is_refused() -> None:
    for length in range(len(CONTENT)):
        with pytest.raises(CaptureError):
            parse(CONTENT[:length], "x.rvt")


@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda data: b"PK\x03\x04" + data))
@settings(deadline=None)
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    _sound_or_refused(content)


@given(st.lists(st.tuples(st.integers(0, len(CONTENT)), st.integers(0, 40), st.binary(max_size=40)), max_size=4))
@settings(max_examples=some_of(500), deadline=None)
def test_no_damage_does_more_than_be_refused(edits: list[tuple[int, int, bytes]]) -> None:
    content = CONTENT
    for at, cut, insert in edits:
        content = content[:at] + insert + content[at + cut :]
    _sound_or_refused(content)


def _sound_or_refused(content: bytes) -> None:
    try:
        found = parse(content, "x.rvt")
    except CaptureError as error:
        assert str(error).startswith("x.rvt: ")
        assert "\n" not in str(error)
    else:
        assert found == FULL


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(leaf for key, child in items for leaf in _leaves(child, (*path, key)))]


@pytest.mark.parametrize("other", [None, 1 << 70, "0xg", True, [1], *long_only(-1, "", [], {}, 1.5)])
def test_no_wrong_value_in_the_description_does_more_than_be_refused(other: Any) -> None:
    """Derived fields and the path and notes may say anything; the rest is checked."""
    for path in _leaves(description())[1:]:

        def change(document: dict[str, Any], path: tuple[Any, ...] = path) -> None:
            target: Any = document
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = other

        try:
            parse(edited(change), "x.rvt")
        except CaptureError as error:
            assert "\n" not in str(error)


CHANGED = "(its checksum is right, so that it was changed after it was written: take the file as it was)"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "x.rvt: is empty"),
        (
            b"\x7fELF" + bytes(99),
            "x.rvt: is not a capture file (.rvt, written by `trace save`; `rvtrace import` makes one of raw trace"
            " bytes)",
        ),
        (CONTENT[:-1], "x.rvt: is truncated or damaged: the list of its members is not readable"),
        (repacked(drop="capture.json"), "x.rvt: is not a capture file: it has no member capture.json"),
        (repacked(drop="sinks/0.bin"), "x.rvt: is incomplete: it has no member sinks/0.bin"),
        (repacked(other={"sinks/0.bin": b"1234"}), "x.rvt: is damaged: sinks/0.bin has 4 bytes, not 300"),
        (
            repacked(b"[1, 2"),
            f"x.rvt: is damaged: capture.json is not JSON: line 1 column 6: Expecting ',' delimiter {CHANGED}",
        ),
        (repacked(b"[\xff]"), f"x.rvt: is damaged: capture.json is not JSON: byte 1 is not UTF-8 {CHANGED}"),
        (
            repacked(b"[" * 100000),
            "x.rvt: is damaged: capture.json is not JSON that can be read: too deep, or a number is too long"
            f" {CHANGED}",
        ),
        (
            repacked(b"[]"),
            'x.rvt: is damaged, or made by another program: capture.json does not say "rvtrace capture"',
        ),
        (edited(lambda d: d.pop("xlen")), "x.rvt: is damaged: capture.json has no xlen"),
        (edited(lambda d: d.update(xlen=16)), "x.rvt: is damaged: capture.json has no usable xlen"),
        (
            edited(lambda d: d["sinks"][0].update(start=5)),
            "x.rvt: is damaged: capture.json has no usable sinks[0].start",
        ),
        (
            edited(lambda d: d["encoders"][0]["registers"].pop("trTeControl")),
            "x.rvt: is damaged: capture.json has no encoders[0].registers.trTeControl",
        ),
        (
            edited(lambda d: d["sinks"][0].update(encoders=["other"])),
            "x.rvt: is damaged: capture.json has no usable sinks[0].encoders",
        ),
        (
            edited(lambda d: d.update(version=8, tool="rvtrace 9.9")),
            "x.rvt: has capture format 8, newer than the 7 this rvtrace knows: it was written by rvtrace 9.9, use that"
            " version or a later one",
        ),
        (edited(lambda d: d.update(version=0)), "x.rvt: is damaged: capture.json has no usable version"),
        (
            edited(lambda d: d["encoders"][0]["unregistered"].update(dialect="rc9")),
            "x.rvt: is damaged: capture.json has no usable encoders[0].unregistered.dialect",
        ),
        (
            edited(lambda d: d["encoders"][0]["unregistered"].update(repeat_bits=33)),
            "x.rvt: is damaged: capture.json has no usable encoders[0].unregistered.repeat_bits",
        ),
        (
            edited(lambda d: d["encoders"][0]["unregistered"].update(timestamp_bits=1 << 40)),
            "x.rvt: is damaged: capture.json has no usable encoders[0].unregistered.timestamp_bits",
        ),
        (
            edited(lambda d: d["images"][0]["elfs"][0].pop("bias")),
            "x.rvt: is damaged: capture.json has no images[0].elfs[0].bias",
        ),
    ],
)
def test_each_kind_of_damage_is_named(content: bytes, line: str) -> None:
    with pytest.raises(CaptureError) as caught:
        parse(content, "x.rvt")
    assert str(caught.value) == line
    assert caught.value.file == "x.rvt"


BRANCHES = (
    CapturedBranches(
        1, BranchPort("tracer0", "neorv32", (("CTRL", 0x531), ("STOP_ADDR", 0xFFFF_FFFE))), bytes(range(16)), True
    ),
    CapturedBranches(0, BranchPort("tacit0", "tacit"), b"\x16\x80\x80"),
)


def test_what_a_later_version_adds_is_ignored() -> None:
    def add(document: dict[str, Any]) -> None:
        document["new"] = 1
        document["sinks"][0]["new"] = {"a": 1}

    assert parse(edited(add), "x.rvt") == FULL


def test_a_capture_is_of_the_oldest_version_that_holds_it() -> None:
    """So that an older rvtrace can read what it can decode."""
    assert description(dump(SMALL))["version"] == 1
    assert description(dump(replace(SMALL, encoders=FULL.encoders)))["version"] == 2
    assert description(dump(replace(SMALL, images=FULL.images)))["version"] == 2
    assert description(dump(replace(SMALL, records=WITH_RECORDS.records)))["version"] == 3
    assert description(dump(replace(SMALL, branches=BRANCHES)))["version"] == 7


def test_a_trace_of_transfers_is_kept() -> None:
    capture = replace(SMALL, branches=BRANCHES)
    assert parse(dump(capture), "x.rvt") == capture
    kept = description(dump(capture))["branches"]
    assert kept[0] == {
        "name": "tracer0", "hart": 1, "kind": "neorv32", "registers": {"CTRL": "0x531", "STOP_ADDR": "0xfffffffe"},
        "member": "branches/0.bin", "size": 16, "wrapped": True,
    }  # fmt: skip


def test_files_of_version_1_are_read() -> None:
    """As it was written before there was a version 2: without the keys that came with it."""
    document = description(dump(SMALL))
    del document["images"], document["encoders"][0]["unregistered"]
    assert document["version"] == 1
    assert parse(repacked(json.dumps(document).encode()), "x.rvt") == SMALL


def test_a_member_cannot_pretend_a_size(tmp_path: Path) -> None:
    """A small file that unpacks to gigabytes is refused before it is unpacked."""
    huge = edited(lambda d: d["sinks"][0].update(size=1 << 40))
    with pytest.raises(CaptureError, match=re.escape("sinks/0.bin has 300 bytes, not 1099511627776")):
        parse(huge, "x.rvt")


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"nothing\.rvt: cannot be read: No such file or directory$"):
        load(tmp_path / "nothing.rvt")
    with pytest.raises(CaptureError, match=r"cannot be read: Is a directory$"):
        load(tmp_path)
    with pytest.raises(CaptureError, match=r"cannot be written: No such file or directory$"):
        save(SMALL, tmp_path / "no" / "x.rvt")
    (tmp_path / "folder.rvt").mkdir()
    with pytest.raises(CaptureError, match=r"cannot be written: Is a directory$"):
        save(SMALL, tmp_path / "folder.rvt")
    assert os.listdir(tmp_path) == ["folder.rvt"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.rvt"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CaptureError, match=r"cannot be written: No space left on device$"):
        save(SMALL, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.rvt"]


OPTIONAL = [field.name for field in fields(Capture) if field.default == ()]


@pytest.mark.parametrize("name", OPTIONAL)
def test_each_part_comes_back_without_the_others(name: str) -> None:
    """Of what few captures have, the reader and the writer have a list in `capture.capture_json`."""
    elfs = (PlacedElf(ElfIdentity("lib.so", None, "cd" * 32), 0x2000),)
    traps = (CapturedTrap(0, TrapRegisters(3, 1, 2, 3, 4, 5)),)
    samples = (FULL, WITH_RECORDS, WITH_VALUES, replace(SMALL, tandem=PORTS, elfs=elfs, traps=traps),
               replace(SMALL, branches=BRANCHES, threads=(CapturedThread(101, 100, "worker"),)),
               replace(SMALL, patched=((0x80000004, b"\x01\0"),)))  # fmt: skip
    value = next(getattr(sample, name) for sample in samples if getattr(sample, name))
    alone = replace(SMALL, **{**dict.fromkeys(OPTIONAL, ()), name: value})
    assert parse(dump(alone), "x.rvt") == alone


DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "capture-format.md").read_text()


def _keys(value: Any) -> set[str]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {*(value if isinstance(value, dict) else ()), *(key for child in children for key in _keys(child))}


def test_every_key_is_documented() -> None:
    assert {key for key in _keys(description()) if f"`{key}`" not in DOCUMENT} == set()


def test_the_documented_example_is_a_capture() -> None:
    example = json.loads(DOCUMENT.partition("## Example")[2].partition("\n## ")[0])
    assert _keys(example) == _keys(description())
    found = parse(_packed(example), "x.rvt")
    encoder = example["encoders"][0]
    in_force = found.encoders[0].in_force
    assert (encoder["inst_mode"], encoder["src_bits"]) == (in_force.inst_mode, in_force.src_bits)
    assert found.sinks[0].in_force.end == 0x3001_0000


def _packed(document: dict[str, Any]) -> bytes:
    """A container with a description and all members it names, each of the size it says."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as container:
        container.writestr("capture.json", json.dumps(document))
        for table in _tables(document):
            if "member" in table:
                container.writestr(table["member"], bytes(table["size"]))
    return buffer.getvalue()


def _tables(value: Any) -> list[dict[str, Any]]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(table for child in children for table in _tables(child))]


def three_gigabytes() -> bytes:
    """The list of members and the description say so; there is less (ZIP's specification, 4.3.12)."""
    content = bytearray(edited(lambda document: document["sinks"][0].update(size=3 << 30)))
    at = content.index(b"sinks/0.bin", content.index(b"PK\x01\x02")) - 46
    assert content[at : at + 4] == b"PK\x01\x02"
    content[at + 24 : at + 28] = (3 << 30).to_bytes(4, "little")
    return bytes(content)


def test_no_more_is_unpacked_than_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the description says, before anything is unpacked; several pieces of code may be in one member."""
    content = dump(replace(SMALL, sinks=(replace(SMALL.sinks[0], data=bytes(3 << 20)),), code=()))
    monkeypatch.setenv("RVTRACE_CAPTURE_LIMIT", "4M")
    assert len(parse(content, "x.rvt").sinks[0].data) == 3 << 20
    monkeypatch.setenv("RVTRACE_CAPTURE_LIMIT", "2M")
    with pytest.raises(CaptureError) as caught:
        parse(content, "x.rvt")
    assert str(caught.value) == (
        "x.rvt: unpacks to 3.0 MiB or more, or claims to; the limit is 2 MiB:"
        " set RVTRACE_CAPTURE_LIMIT=1G in the environment to raise the limit"
    )
    monkeypatch.delenv("RVTRACE_CAPTURE_LIMIT")

    with pytest.raises(CaptureError, match=r"unpacks to 3.0 GiB or more.* limit is 2 GiB.* RVTRACE_CAPTURE_LIMIT=4G"):
        parse(three_gigabytes(), "x.rvt")
    monkeypatch.setenv("RVTRACE_CAPTURE_LIMIT", "4G")
    with pytest.raises(CaptureError, match=r"is truncated or damaged: sinks/0.bin cannot be read"):
        parse(three_gigabytes(), "x.rvt")


def test_code_that_is_named_often_counts_often(monkeypatch: pytest.MonkeyPatch) -> None:
    def often(document: dict[str, Any]) -> None:
        (one,) = document["code"][:1]
        document["code"] = [{**one, "address": hex(n << 20)} for n in range(1000)]

    monkeypatch.setenv("RVTRACE_CAPTURE_LIMIT", "500")
    with pytest.raises(CaptureError, match="the limit is 500 bytes"):
        parse(edited(often), "x.rvt")


@pytest.mark.parametrize("text", ["many", "-1", "1.5G", "1e9", "\u0663"])
def test_a_limit_that_is_no_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVTRACE_CAPTURE_LIMIT", text)
    with pytest.raises(BadLimit, match=r"^\$RVTRACE_CAPTURE_LIMIT is .*, which is not a number of bytes: 512M"):
        parse(CONTENT, "x.rvt")


def test_too_little_memory_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(zipfile.ZipExtFile, "read", full)
    with pytest.raises(CaptureError, match=r"^x.rvt: cannot be read: there is not enough memory for this") as caught:
        parse(CONTENT, "x.rvt")
    assert "damaged" not in str(caught.value)


def test_reading_and_writing_can_be_interrupted(tmp_path: Path) -> None:
    """What was there stays."""
    large = replace(SMALL, sinks=(replace(SMALL.sinks[0], data=bytes(3 << 20)),))
    save(large, tmp_path / "x.rvt")
    content = (tmp_path / "x.rvt").read_bytes()
    labels: list[str] = []

    def stop(label: str, done: int, total: int | None = None) -> None:
        labels.append(label)
        if done >= 2 << 20:
            raise Cancelled

    with pytest.raises(Cancelled):
        load(tmp_path / "x.rvt", stop)
    with pytest.raises(Cancelled):
        save(large, tmp_path / "x.rvt", stop)
    assert set(labels) == {"reading the capture", "writing the capture"}
    assert (tmp_path / "x.rvt").read_bytes() == content and os.listdir(tmp_path) == ["x.rvt"]
