"""`rvtrace tandem verify`: what is printed, with which status. The model is Spike's log, but where Spike itself is."""

import json
import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.tandem import verify
from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.session.verify.model import ModelFailed, ModelStep
from tests.decode.tandem.corpus import DATA, RV64
from tests.helpers.spike import needs_spike
from tests.session.verify.faults import changed, flip, groups_of
from tests.session.verify.logged_model import Replay

ADD, CSR = "flute_rv64ui-p-add", "flute_rv64si-p-csr"
FAULTY = 253
"""The group (counted from 0) of `rv64ui-p-add` that gets a fault."""


def command(name: str, *words: object, trace: Path | None = None, model: str = "spike") -> list[str]:
    elf = str(DATA / "riscv-tests" / name.partition("_")[2])
    file = str(trace or DATA / "tandem" / f"{name}.tvt")
    return ["tandem", "verify", file, "--dialect", "flute", "--elf", elf, "--quiet", "--model", model, *map(str, words)]


@pytest.fixture(autouse=True)
def replayed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is a log, of the program that the image is of."""
    if request.function in (test_real_models, test_a_trace_that_begins_in_the_middle):
        return
    monkeypatch.setattr(verify, "open_model", lambda name, image, *_: Replay(f"flute_{Path(image.path).name}"))


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with one wrong register."""
    groups = list(groups_of(ADD))
    found = changed(groups[FAULTY], flip(range(0x1001, 0x1020), 12))
    assert found is not None
    groups[FAULTY] = found
    path = tmp_path_factory.mktemp("faulty") / "faulty.tvt"
    path.write_bytes(encode(groups, RV64))
    return path


def test_no_divergence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(ADD)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model:    Spike's log" and lines[1].startswith(
        "trace:    RV64, FLEN 64, MLEN 64, flute, 516 groups"
    )
    assert lines[-1] == "result:   no divergence"
    assert "verified: 516 groups: 513 instructions, 2 traps, 1 reset" in lines


@pytest.mark.parametrize(
    ("begin", "end", "status", "result"),
    [
        (200, 205, 1, "no divergence in what could be read"),
        (510, 516, 0, "no divergence"),  # the end of a trace that is cut off
    ],
)
def test_what_cannot_be_read_is_no_success(
    begin: int, end: int, status: int, result: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = list(groups_of(ADD))
    path = tmp_path / "damaged.tvt"
    path.write_bytes(encode(groups[:begin], RV64) + b"\xff" * 9 + encode(groups[end:], RV64))
    assert main(command(ADD, trace=path)) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["lost:     9 bytes in 1 stretch", f"result:   {result}"]


def test_a_divergence(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The group, its place, the instruction, both values, what ran before."""
    assert main(command(ADD, "--last", 3, trace=faulty)) == 1
    out = capsys.readouterr().out
    group = groups_of(ADD)[FAULTY]
    assert f"divergence 1: group {FAULTY + 1}, trace byte {group.offset:#x}, number" in out
    block = out[out.index("divergence 1") : out.index("\n\nverified")].splitlines()
    numbers = [int(line.split()[0]) for line in block if re.match(r"  \d+\t", line)]
    assert numbers == [FAULTY - 2, FAULTY - 1, FAULTY, FAULTY + 1]
    (value,) = group.registers.values()
    (found,) = [line for line in block if line.startswith("  ! ")]
    assert f"trace 0x{value ^ 1 << 12:016x}, model 0x{value:016x} (bits 0x1000" in found
    assert out.splitlines()[-1] == "result:   1 divergence: register 1"


def test_it_stops_and_shows_as_much_as_is_asked(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(ADD, "--stop-at-first", "--last", 0, "--state", trace=faulty)) == 1
    out = capsys.readouterr().out
    assert f"verified: {FAULTY + 1} groups" in out and "(stopped at the first divergence)" in out
    states = [line for line in out.splitlines() if line.endswith(" !")]
    assert len(states) == 1 and re.search(r"^    pc +0x\w{16} 0x\w{16}$", out, re.M)
    assert main(command(ADD, "--show", 0, trace=faulty)) == 1
    out = capsys.readouterr().out
    assert "divergence 1" not in out and out.endswith("register 1; 1 of them not shown\n")


def test_only_some_groups(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(ADD, "--groups", f"20,{FAULTY}", trace=faulty)) == 0
    assert f"verified: {FAULTY - 19} groups" in capsys.readouterr().out
    assert main(command(ADD, "--groups", "600,700")) == 2


def test_json(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(ADD, "--json", "--state", trace=faulty)) == 1
    model, divergence, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert model == {"model": "spike", "configuration": {"model": "Spike's log"}}
    group = groups_of(ADD)[FAULTY]
    (value,) = group.registers.values()
    assert (divergence["divergence"], divergence["group"], divergence["trace-byte"]) == (1, FAULTY + 1, group.offset)
    (one,) = divergence["differences"]
    assert (one["kind"], one["trace"], one["model"]) == ("register", f"0x{value ^ 1 << 12:016x}", f"0x{value:016x}")
    assert divergence["registers"][one["register"]] == {"trace": one["trace"], "model": one["model"]}
    assert summary["divergences"] == 1 and summary["differences"] == {"register": 1}
    assert summary["groups"] == 516 and summary["executed"] == 507


def test_masks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(CSR)) == 1
    out, said = capsys.readouterr()
    assert "! medeleg: trace 0x000000000000b109, model 0x000000000000b108 (bits 0x1, before 0x0000000000000000)" in out
    assert said == ""
    (tmp_path / "masks").write_text("medeleg:1 # a choice\n")
    for option in (("--mask", "medeleg:1"), ("--ignore", "medeleg"), ("--mask-file", tmp_path / "masks")):
        assert main(command(CSR, *option)) == 0
        assert "not compared: medeleg" in capsys.readouterr().out


def test_a_model_that_cannot_hold_a_value(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said once more at the end, with the mask for it."""

    class Legal(Replay):
        def write_register(self, regno: int, value: int) -> None:
            super().write_register(regno, value & ~1 if regno == 0x302 else value)

    monkeypatch.setattr(verify, "open_model", lambda *_: Legal(CSR))
    assert main(command(CSR)) == 1
    assert capsys.readouterr().err.endswith("or --mask medeleg:0x1\n")


def test_a_model_that_dies(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What was compared up to then is told; the status is another one than that of divergences."""

    class Mortal(Replay):
        closed = 0

        def step(self) -> ModelStep:
            if self.steps == 100:
                raise ModelFailed("the model is gone")
            return super().step()

        def close(self) -> None:
            Mortal.closed += 1

    monkeypatch.setattr(verify, "open_model", lambda *_: Mortal(ADD))
    assert main(command(ADD)) == 2
    out, said = capsys.readouterr()
    assert "(the model is gone)" in out and said == "rvtrace: the model is gone\n" and Mortal.closed == 1


WRONG = [
    (("--mask", "nothing"), "there is no register 'nothing'"),
    (("--mask", "mstatus:q"), "'q' is not a bit mask"),
    (("--mask-file", "/no/such"), "--mask-file /no/such: No such file"),
    (("--device", "5"), "--device 5 is not a range of memory"),
    (("--memory", "0:0"), "--memory 0:0 is not a range of memory"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_wrong_arguments(words: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(ADD, *words)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and said in lines[0]


def test_a_trace_that_cannot_be_read_is_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing compared is not the same as nothing found."""
    path = tmp_path / "short.tvt"
    path.write_bytes((DATA / "tandem" / f"{ADD}.tvt").read_bytes()[:3])
    assert main(command(ADD, trace=path)) == 2
    assert capsys.readouterr().out.endswith("result:   nothing could be compared\n")
    path.write_bytes(b"")
    assert main(command(ADD, trace=path)) == 2


@pytest.mark.parametrize("model", [pytest.param("spike", marks=needs_spike), "simulated"])
def test_real_models(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What hart it is comes first. The rest of the corpus: tests/console/models/test_models.py."""
    name = "piccolo_rv32ui-p-sb"
    words = command(name, model=model)
    words[words.index("flute")] = "piccolo"
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("model:    ") and any(line.startswith("    PMP regions: 0") for line in lines[:9])
    assert any(line.startswith("    ISA: rv32imac") for line in lines[:9]) and lines[-1] == "result:   no divergence"


@needs_spike
@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("flute_rv64ud-p-fadd", 3000),  # floating point is on, and nothing says so
        ("flute_rv64-irq", 2500),  # where traps lead to, and which interrupts are on
        ("flute_rv64ua-p-amoadd_d", 2069),  # a store at an address that is told only
        ("piccolo_rv32-hello_truncated_midgroup", 11440),  # data that changed before
    ],
)
def test_a_trace_that_begins_in_the_middle(
    name: str, at: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not told is presumed to be so that the hart did right, or is not compared."""
    core, _, elf = name.removesuffix("_truncated_midgroup").partition("_")
    cut = tmp_path / "cut.tvt"
    cut.write_bytes((DATA / "tandem" / f"{name}.tvt").read_bytes()[at:])
    words = ["tandem", "verify", str(cut), "--wrapped", "--dialect", core, "--elf", str(DATA / "riscv-tests" / elf)]
    assert main([*words, "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "result:   no divergence"
    (compared,) = (line for line in lines if line.startswith("compared:"))
    assert not compared.startswith("compared: 0 ")


def test_source_lines() -> None:
    """As addr2line of binutils has them."""
    path = str(DATA / "riscv-tests" / "rv64-irq")
    found = SourceLines(Image.from_elf(path))
    expected = {0x8000_0000: 5, 0x8000_0044: 23, 0x8000_006C: 36}
    assert {address: found.line_at(address) for address in expected} == {at: f"irq.S:{n}" for at, n in expected.items()}
    assert found.line_at(0x1000) == "" and SourceLines(Image()).line_at(0x8000_0000) == ""


def test_ctrl_c_leaves_the_model_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It may be in the middle of an answer: nothing is asked of it any more; what was compared is told."""

    class Interrupted(Replay):
        gone = False

        def step(self) -> ModelStep:
            if self.steps == 150:
                Interrupted.gone = True
                raise KeyboardInterrupt
            return super().step()

        def read_register(self, regno: int) -> int | None:
            assert not self.gone
            return super().read_register(regno)

    monkeypatch.setattr(verify, "open_model", lambda *_: Interrupted(CSR))
    assert main(command(CSR, "--json")) == 130
    out, said = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["stopped"] == "interrupted" and said == "rvtrace: interrupted\n"
