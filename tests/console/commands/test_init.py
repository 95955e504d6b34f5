"""`rvtrace init` at the shell and on a terminal: options, questions, and the file that is written or not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.description.file import load
from tests.transport.openocd.fake_server import FakeOpenOcd

ENCODER, SINK = 0x4A00_0000, 0x4A00_1000
PROBE = f"{ENCODER:#x}-{SINK + 0x1000:#x}"


@pytest.fixture(scope="module")
def openocd() -> Iterator[FakeOpenOcd]:
    """An encoder and a RAM sink with memory of its own, both awake (Active and Empty)."""
    with FakeOpenOcd("rvtrace\nOpen On-Chip Debugger 0.12.0\nriscv.cpu0") as server:
        server.memory = {ENCODER: 0x9, ENCODER + 4: 0x0001_0101, SINK: 0x9, SINK + 4: 0x1901}
        yield server


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(openocd: FakeOpenOcd, *words: str) -> int:
    return main(["init", "--openocd", f"127.0.0.1:{openocd.port}", *words])


def typing(monkeypatch: pytest.MonkeyPatch, *keys: str | type[BaseException]) -> list[str]:
    """Type *keys* on a terminal; return the list of the prompts that were answered."""
    prompts: list[str] = []
    waiting = iter(keys)

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        key = next(waiting)
        if isinstance(key, str):
            return key
        raise key

    monkeypatch.setattr("builtins.input", answer)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    return prompts


def test_all_by_options(openocd: FakeOpenOcd, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(openocd, "--probe", PROBE) == 0
    description = load(here / "rvtrace.toml")
    assert [c.name for c in description.components] == ["encoder0", "ram0"]
    assert description.openocd.tcl_port == openocd.port
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-2:] == [
        "rvtrace.toml: encoder0 at 0x4a000000, ram0 at 0x4a001000",
        f"next, in gdb: `set trace target {here}/rvtrace.toml`, `trace info` (what is missing), `trace start`",
    ]


def test_a_target_without_components(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--openocd", "none", "--known", "neorv32", "--yes", "--output", "rvtrace.toml"]) == 0
    assert "rvtrace.toml: tracer0 at 0xfff30000" in capsys.readouterr().err.splitlines()


def test_to_standard_output(openocd: FakeOpenOcd, here: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert init(openocd, "--probe", PROBE, "--output", "-") == 0
    (here / "x.toml").write_bytes(capfdbinary.readouterr().out)
    assert len(load(here / "x.toml").components) == 2


def test_a_file_is_replaced_only_by_force(openocd: FakeOpenOcd, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / "rvtrace.toml"
    file.write_text("mine")
    assert init(openocd, "--probe", PROBE, "--yes") == 1
    assert capsys.readouterr().err == (
        "rvtrace: rvtrace.toml exists: --force replaces it, --output names another file\n"
    )
    assert file.read_text() == "mine"
    assert init(openocd, "--probe", PROBE, "--force", "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert load(file).encoders


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ((), "give --openocd HOST:PORT, or --yes for the default \"127.0.0.1:6666\""),
        (("--openocd", "{here}"), "give --probe ADDRESS-ADDRESS"),
    ],
)  # fmt: skip
def test_what_is_missing_without_a_terminal(
    words: tuple[str, ...], missing: str, openocd: FakeOpenOcd, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *(word.format(here=f"127.0.0.1:{openocd.port}") for word in words)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("rvtrace: ") and last.endswith(f"there is no terminal to ask on; {missing}")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--probe", "0x10"), "--probe: 0x10 is not a multiple of 0x1000, as all bases of trace components are"),
        (("--probe", "0x1000"), "--probe: no trace component was found: allow other addresses with --probe, from the"
                                " chip's manual"),
        (("--probe", PROBE, "--to", "encoder7=ram0"), '--to encoder7=ram0: there is no component "encoder7" that needs'
                                                      " it"),
        (("--probe", PROBE, "--harts", "0"), "--harts 0: nothing needs it"),
        (("--device-tree", "no.dtb", "--probe", PROBE), "--device-tree: no.dtb: cannot be read: No such file or"
                                                        " directory"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(
    words: tuple[str, ...], problem: str, openocd: FakeOpenOcd, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(openocd, *words) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"rvtrace: {problem}"
    assert list(here.iterdir()) == []


def test_questions_on_a_terminal(
    openocd: FakeOpenOcd, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = typing(monkeypatch, "nonsense", f"127.0.0.1:{openocd.port}", "", "", "0x1000", PROBE)
    assert main(["init"]) == 0
    assert prompts == [
        *["OpenOCD's Tcl server (HOST:PORT), or its configuration file [127.0.0.1:6666]: "] * 2,
        "Device tree of the board, .dtb or .dts, or its address in the chip's memory (or none) [none]: ",
        *["Addresses to look for trace components at, as in 0x20000000-0x20004000 (or none): "] * 3,
    ]
    assert "can hang a chip" in capsys.readouterr().out
    assert load(here / "rvtrace.toml").encoders


def test_no_address_to_look_at(
    openocd: FakeOpenOcd, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with what that means, not with the question again; nothing is read from the chip."""
    typing(monkeypatch, f"127.0.0.1:{openocd.port}", "", "none")
    assert main(["init"]) == 1
    assert "no trace component is looked for, so there is nothing to describe" in capsys.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(("key", "status", "said"), [
    (KeyboardInterrupt, 130, "rvtrace: interrupted"),
    (EOFError, 1, "rvtrace: the input ended before all was answered: nothing is written"),
])  # fmt: skip
def test_ctrl_c_and_ctrl_d_write_nothing(
    key: type[BaseException], status: int, said: str,
    openocd: FakeOpenOcd, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    typing(monkeypatch, "", key)
    assert init(openocd) == status
    assert capsys.readouterr().err.splitlines()[-1] == said
    assert list(here.iterdir()) == []


def test_a_file_that_the_user_keeps(openocd: FakeOpenOcd, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "rvtrace.toml").write_text("mine")
    prompts = typing(monkeypatch, "")
    assert init(openocd, "--probe", PROBE) == 1
    assert prompts == ["rvtrace.toml exists: replace it? y or n [n]: "]
    assert (here / "rvtrace.toml").read_text() == "mine"
