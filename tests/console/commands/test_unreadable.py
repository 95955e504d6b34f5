"""Bytes that are not trace: `rvtrace import`, `decode` and `decode --follow` say so in a line, and end with status
1.
"""

import bz2
import lzma
import random
import zlib
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.session import Session
from tests.console.interruption import stdin
from tests.decode.ntrace.messages import split
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG, long_only, some_of

ELF = str(reference_streams.FOLDER / "median.elf")
STREAM = (reference_streams.FOLDER / "median.1.nex").read_bytes()
FORMATS = ("--ntrace", "--etrace", "--tandem")


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def png() -> bytes:
    """A picture of noise: its header, and one chunk of compressed bytes."""
    begin = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + b"\0\0\0\x80" * 2 + b"\x08\x02\0\0\0"
    return begin + b"\0" * 4 + b"\0\0\x20\0IDAT" + zlib.compress(noise(2000 if LONG else 150))


NO_TRACES = {
    "one": noise(1),
    "ten": noise(10),
    "some": noise(300 if LONG else 150),
    "thousand": noise(1000),
    "many": noise(some_of(100_000)),
    "zeros": bytes(1000),
    "ones": b"\xff" * 1000,
    "text": Path(__file__).read_bytes()[: 2000 if LONG else 150],
    "png": png(),
}
SLOW = {("thousand", "--etrace"), ("many", "--etrace"), ("png", "--ntrace"), ("text", "--etrace")}
"""Of which nothing new is learned: whatever else could have been said is tried."""
SLOW |= set() if LONG else {("many", "--ntrace"), ("thousand", "--ntrace")}
IMPORTED = [(kind, form) for kind in NO_TRACES for form in FORMATS if (kind, form) not in SLOW]
UNREADABLE = "cannot be read as "


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[str], list[str]]:
    """The exit status, what is printed, and what is said beside it."""
    status = main(list(map(str, words)))
    out, err = capsys.readouterr()
    return status, out.splitlines(), err.splitlines()


@pytest.mark.parametrize(("kind", "form"), IMPORTED)
def test_what_is_no_trace_is_not_imported(
    kind: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, file = tmp_path / "raw.bin", tmp_path / "x.rvt"
    raw.write_bytes(NO_TRACES[kind])
    file.write_bytes(b"another capture")
    status, shown, said = run(capsys, "import", raw, form, "--elf", ELF, "-o", file)
    assert (status, shown, len(said)) == (1, [], 1)
    only_filling = (kind, form) in {("zeros", "--etrace"), ("ones", "--ntrace")}
    assert said[0].startswith(f"rvtrace: {raw}: ")
    assert ("is empty: 1000 idle bytes" if only_filling else UNREADABLE) in said[0]
    assert file.read_bytes() == b"another capture"
    assert {path.name for path in tmp_path.iterdir()} == {"raw.bin", "x.rvt"}


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["--json"], "--ntrace"), (["--events"], "--etrace"), (["--events"], "--tandem"),
        *long_only((["--events"], "--ntrace"), (["--json"], "--etrace"), (["--json"], "--tandem")),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_not_decoded(
    words: list[str], form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw.bin"
    raw.write_bytes(NO_TRACES["some"])
    status, shown, said = run(capsys, "decode", raw, *words, form, "--elf", ELF)
    assert (status, shown, len(said)) == (1, [], 1)
    assert said[0].startswith(f"rvtrace: {raw}: ") and UNREADABLE in said[0]


@pytest.mark.parametrize("form", ["--etrace", "--tandem", *long_only("--ntrace")])
def test_what_is_no_trace_is_kept_when_it_is_followed(
    form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A probe does not send it again."""
    raw, file = tmp_path / "raw.bin", tmp_path / "x.rvt"
    raw.write_bytes(NO_TRACES["some"])
    with raw.open("rb") as source, stdin(source.fileno()):
        assert main(["decode", "--follow", "-", form, "--elf", ELF, "-o", str(file)]) == 1
    said = capfd.readouterr().err.splitlines()
    assert said[-1].startswith("rvtrace: standard input: ") and UNREADABLE in said[-1]
    assert not [line for line in said if line.startswith("hint")]
    assert load(file).captured[0].data == NO_TRACES["some"]


def test_a_line_on_which_nothing_is_sent_is_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw.bin").write_bytes(b"\xff" * 1000)
    with (tmp_path / "raw.bin").open("rb") as source, stdin(source.fileno()):
        assert main(["decode", "--follow", "-", "--ntrace", "--elf", ELF]) == 0
    assert "the end of the stream: 1000 bytes: 0 instructions" in capfd.readouterr().err


def messages(first: int, last: int) -> bytes:
    return b"".join(list(split(STREAM))[first:last])


@pytest.mark.parametrize(
    ("trace", "elf"),
    [
        (messages(0, 1), "median"),
        (messages(0, 4), "median"),
        (STREAM[:50], "median"),
        (messages(3, 60), "median"),
        (STREAM[:700], "towers"),
        (b"\xff" * 5000 + messages(0, 1), "median"),
        (noise(1) + (STREAM if LONG else STREAM[:400]), "median"),
    ],
    ids=["one message", "few messages", "cut off", "no start", "another program", "mostly filling", "damaged start"],
)
def test_a_trace_of_which_little_or_nothing_is_decoded_is_one(
    trace: bytes, elf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, file = tmp_path / "raw.bin", tmp_path / "x.rvt"
    raw.write_bytes(trace)
    status, _, said = run(capsys, "import", raw, "--elf", reference_streams.FOLDER / f"{elf}.elf", "-o", file)
    assert (status, said) == (0, [])
    assert load(file).sinks[0].data == trace


@pytest.mark.parametrize(
    "form", ["--ntrace", "--etrace --dialect pulp", *long_only("--ntrace --src-bits 2", "--etrace")]
)
def test_noise_of_any_kind_has_no_hint(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With some of many options, a few bytes always become a message, and a few messages an instruction."""
    raw = tmp_path / "raw.bin"
    for data in (noise(30), b"\x85" * 100, b"\x2c" * 300):
        raw.write_bytes(data)
        *_, said = run(capsys, "decode", raw, *form.split(), "--elf", ELF, "--events")
        assert not [line for line in said if line.startswith("hint")]


def test_a_trace_is_kept_when_its_decoding_is_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "harts", interrupted)
    raw, file = tmp_path / "raw.bin", tmp_path / "x.rvt"
    raw.write_bytes(STREAM)
    assert run(capsys, "import", raw, "--elf", ELF, "-o", file) == (130, [], ["rvtrace: interrupted"])
    assert load(file).sinks[0].data == STREAM


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[10:00:01] a line of a log\r\n" * 40, "it is a text; of a log of Spike, QEMU or Ibex `rvtrace import --log"),
        (("a line of a log\r\n" * 40).encode("utf-16"), "it is a text in UTF-16: save it as UTF-8; of a log"),
        (lzma.compress(b"core   0: 0x0" * 99), "it is packed by xz: unpack it first"),
        (bz2.compress(b"core   0: 0x0" * 99), "it is packed by bzip2: unpack it first"),
    ],
)
def test_what_it_is_instead(data: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw.bin").write_bytes(data)
    status, _, lines = run(capsys, "import", tmp_path / "raw.bin", "--ntrace", "--elf", ELF, "-o", tmp_path / "x.rvt")
    assert status == 1 and f" instructions ran: {said}" in lines[0] and len(lines) == 1
