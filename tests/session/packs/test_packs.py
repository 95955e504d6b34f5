"""Packs: made twice they are the same bytes; on a machine with nothing else they show what the capture showed; damage
is one line, and nothing is ever written elsewhere.
"""

import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.file import load, parse
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.packs.making import save_trace
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support import inputs
from tests.decode.executed.logs import PROGRAMS, spike_log
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.session.packs.pack_files import members, zipped
from tests.transport.simulated.hart.programs import build

C = "calls_and_traps.c"


class Case(NamedTuple):
    """A pack, whose ELF and source are gone, and what commands printed before."""

    pack: bytes
    bare: bytes
    capture: bytes
    said: dict[str, str]
    source: str
    text: str


COMMANDS = ("decode FILE 1,300", "functions FILE", "status FILE --json", "coverage FILE --files --json",
            "note FILE --json")  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    assert main([*map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    folder = tmp_path_factory.mktemp("made")
    source = folder / "fw" / "src" / C
    source.parent.mkdir(parents=True)
    shutil.copy(PROGRAMS / C, source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RVTRACE_CACHE", str(folder / "kept"))
        elf = build(folder / "fw", "start.S", source, march="rv64imac", options=("-g", f"-I{PROGRAMS}"))
        log = spike_log(elf, folder, "-l", lines=3_000)
        capture = folder / "x.rvt"
        assert main(["encode", "--elf", str(elf), "--pcs", str(log), "-o", str(capture), "--quiet"]) == 0
        assert main(["note", str(capture), "--at", "20", "look here", "--quiet"]) == 0
        (folder / "fw" / "rvtrace.toml").write_text("# the board\n")
        output = _outputs(capture)
        for name, options in (("a", []), ("b", []), ("bare", ["--no-sources"])):
            words = ["pack", str(capture), "-o", str(folder / f"{name}.rvtz"), *options, "--quiet"]
            assert main(words) == 0
        assert (folder / "a.rvtz").read_bytes() == (folder / "b.rvtz").read_bytes()
    packed, bare = (folder / "a.rvtz").read_bytes(), (folder / "bare.rvtz").read_bytes()
    made = Case(packed, bare, capture.read_bytes(), output, str(source), source.read_text())
    shutil.rmtree(folder)
    yield made


def _outputs(file: Path) -> dict[str, str]:
    """What the commands print, with the names of the files in them as FILE."""
    found = {}
    for command in COMMANDS:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", stream)
            assert main([*command.replace("FILE", str(file)).split(), "--quiet"]) == 0
        stream.flush()
        assert isinstance(stream.buffer, io.BytesIO)
        found[command] = stream.buffer.getvalue().decode().replace(str(file), "FILE")
    return found


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of another machine, on which the pack is alone."""
    monkeypatch.setenv("RVTRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(inputs, "_stand_ins", {})
    return tmp_path


def written(folder: Path, content: bytes, name: str = "case.rvtz") -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def test_commands_print_what_they_printed_of_the_capture(case: Case, there: Path) -> None:
    assert not os.path.exists(case.source)
    file = written(there, case.pack)
    assert {**_outputs(file), COMMANDS[2]: ""} == {**case.said, COMMANDS[2]: ""}
    before, now = json.loads(case.said[COMMANDS[2]]), json.loads(_outputs(file)[COMMANDS[2]])
    assert before.keys() == now.keys()


def test_a_trace_is_saved_as_a_pack(case: Case, there: Path, tmp_path: Path) -> None:
    """The same one as `rvtrace pack` makes, of what was opened."""
    file, session = written(there, case.pack), Session()
    session.open(file, None)
    for sources, expected, named in ((True, case.pack, "2 source files"), (False, case.bare, "0 source files")):
        again = tmp_path / "again.rvtz"
        lines = save_trace(session, str(again), Context(), sources=sources)
        assert again.read_bytes() == expected
        assert lines[1] == f"It has 1 program, {named}, 1 note, the target description, too."
    save_trace(session, str(tmp_path / "alone.rvt"), Context())
    assert members((tmp_path / "alone.rvt").read_bytes()) == members(case.capture)
    session.close()


def test_gdb_has_program_sources_and_notes(case: Case, there: Path) -> None:
    """And its own again when the pack is closed."""
    file = written(there, case.pack, "a case.rvtz")
    asked = [f'trace open "{file}"', "list main", "trace note", "show substitute-path"]
    after = ["trace close", "show substitute-path "]
    said = run_gdb(None, [SOURCE, *asked, *after], RVTRACE_CACHE=str(there / "cache"))
    lines = re.findall(r"^(\d+)\t(.*)$", said["list main"], re.M)
    assert lines and [text for _, text in lines] == [case.text.splitlines()[int(number) - 1] for number, _ in lines]
    assert "look here" in said["trace note"] and str(there / "cache") in said["show substitute-path"]
    assert str(there / "cache") not in said["show substitute-path "]


def test_a_pack_without_sources_has_none(case: Case, there: Path) -> None:
    assert case.text.encode() not in b"".join(members(case.bare).values())
    assert case.text.encode() in members(case.pack).values()
    capture = load(written(there, case.bare))
    assert capture.unpacked is not None and capture.unpacked.sources == {} and capture.unpacked.target is not None


def test_what_reads_captures_alone_reads_packs(case: Case) -> None:
    """As versions before packs do: all that is new is ignored."""
    assert parse(case.pack, "x.rvt") == parse(case.capture, "x.rvt")


def test_a_pack_of_a_pack_is_the_same(case: Case, there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, again = written(there, case.pack), there / "again.rvtz"
    facts = json.loads(printed(capsys, "pack", file, "-o", again, "--json"))
    assert facts["absent"] == [] and case.source in facts["sources"]
    assert again.read_bytes() == case.pack


def test_a_note_in_a_pack_changes_nothing_else(case: Case, there: Path) -> None:
    file = written(there, case.pack)
    assert main(["note", str(file), "--at", "30", "mine", "--quiet"]) == 0
    before, after = members(case.pack), members(file.read_bytes())
    assert [it["text"] for it in json.loads(after.pop("capture.json"))["place_notes"]] == ["look here", "mine"]
    before.pop("capture.json")
    assert after == before


def changed(case: Case, change: Callable[[dict[str, Any]], object]) -> bytes:
    parts = members(case.pack)
    document = json.loads(parts["pack.json"])
    change(document)
    return zipped({**parts, "pack.json": json.dumps(document).encode()})


def _source(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda document: document["sources"][0].update({key: value})


_BAD: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    *((_source("path", path), "no usable sources[0].path") for path in (
        "../../up.c", "/a/../../up.c", "/", "", "//etc/x", "/a//b", "/a/./b", "/a\0b", "/a\nb", "x/" * 99 + "x",
        "/" + "x" * 256, "\udc80", 5,
    )),
    (lambda document: document["folders"].append("/../up"), "no usable folders"),
    (lambda document: document["folders"].append(document["sources"][0]["path"]), "no usable sources"),
    (lambda document: document["sources"].append(document["sources"][0]), "no usable sources"),
    (lambda document: document["elfs"].append(document["elfs"][0]), "no usable elfs"),
    (lambda document: document.update(sources=document["sources"] * 20_001), "names more than 20000 files"),
    (lambda document: document.update(version=2, tool="rvtrace 9.9"), "has pack format 2, newer than the 1 this rvtrace"
     " knows: it was written by rvtrace 9.9, use that version or a later one"),
    (lambda document: document.update(version=0), "is damaged: pack.json has no usable version"),
    (lambda document: document.update(format="x"), 'made by another program: pack.json does not say "rvtrace pack"'),
    (lambda document: document.pop("elfs"), "pack.json has no elfs"),
    (_source("sha256", "0" * 64), "is not what was packed"),
    (_source("member", "no such"), "it has no member no such"),
    (_source("size", 1), "bytes, not 1"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), _BAD)
def test_damage_is_one_line_and_writes_nothing(
    case: Case, there: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    file = written(there, changed(case, change))
    with pytest.raises(CaptureError) as caught:
        load(file)
    assert says in str(caught.value) and "\n" not in str(caught.value), caught.value
    assert [it for it in there.rglob("*") if it.is_file()] == [file]


def test_a_member_that_is_not_json_is_named_with_the_place(case: Case, there: Path) -> None:
    file = written(there, zipped({**members(case.pack), "pack.json": b'{"format": "rvtrace pack",\n "version" 1}'}))
    with pytest.raises(CaptureError, match=r"is damaged: pack\.json is not JSON: line 2 column 12: Expecting ':'"):
        load(file)


def test_what_a_pack_unpacks_to_is_bounded(case: Case, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(there, case.pack)
    monkeypatch.setenv("RVTRACE_CAPTURE_LIMIT", str(len(members(case.pack)["elf/0.elf"])))
    with pytest.raises(CaptureError, match=r"unpacks to .* or more"):
        load(file)


def unpacked_source(case: Case, file: Path) -> Path:
    unpacked = load(file).unpacked
    assert unpacked is not None
    return Path(unpacked.sources[case.source])


def test_what_was_changed_there_is_unpacked_again(case: Case, there: Path) -> None:
    file = written(there, case.pack)
    source = unpacked_source(case, file)
    first = source.stat().st_ino
    assert source.read_text() == case.text and source.stat().st_mode & 0o777 == 0o400
    assert unpacked_source(case, file).stat().st_ino == first, "unpacked once"
    source.chmod(0o600)
    source.write_text("another text")
    assert unpacked_source(case, file).read_text() == case.text


def test_links_in_the_cache_are_not_followed(case: Case, there: Path) -> None:
    file = written(there, case.pack)
    source, elsewhere = unpacked_source(case, file), there / "elsewhere.c"
    elsewhere.write_text("mine")
    source.unlink()
    source.symlink_to(elsewhere)
    assert unpacked_source(case, file).read_text() == case.text and not source.is_symlink()
    assert elsewhere.read_text() == "mine"


def test_a_cache_that_others_write_to_is_refused(
    case: Case, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (there / "cache").mkdir()
    (there / "open").mkdir()
    (there / "open").chmod(0o777)
    monkeypatch.setenv("RVTRACE_CACHE", str(there / "open" / "cache"))
    with pytest.raises(CaptureError, match=r"its files cannot be unpacked: .*everybody can write to"):
        load(written(there, case.pack))


def test_without_a_cache_files_are_there_for_this_process(
    case: Case, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVTRACE_CACHE", "")
    source = unpacked_source(case, written(there, case.pack))
    assert source.read_text() == case.text and not (there / "cache").exists()


def test_what_is_not_here_is_said(case: Case, there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sources of a capture whose program alone is here."""
    elf = there / "app.elf"
    elf.write_bytes(members(case.pack)["elf/0.elf"])
    capture, out = written(there, case.capture, "x.rvt"), there / "y.rvtz"
    assert main(["pack", str(capture), "--elf", str(elf), "-o", str(out), "--quiet"]) == 0
    shown = capsys.readouterr()
    assert case.source in shown.err and "cannot be read here" in shown.err
    assert "1 program, 1 source file, 1 note" in shown.out
    loaded = load(out)
    assert loaded.elf is not None
    assert hashlib.sha256(Path(loaded.elf.path).read_bytes()).hexdigest() == loaded.elf.sha256
    assert main(["pack", str(elf), "-o", str(out)]) == 1 and main(["pack", str(out), "-o", str(out)]) == 1
