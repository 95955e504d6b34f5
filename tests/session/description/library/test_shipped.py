"""The shipped targets: what each says of itself, and how a name is told from a file."""

import os
from pathlib import Path

import pytest

from rvtrace_gdb.session.description import file
from rvtrace_gdb.session.description.library.shipped import (
    NeedsBase,
    NotATarget,
    ShippedTarget,
    load,
    path_of,
    shipped,
    target_names,
    targets,
)
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.description.selection import selected

PROVED = {
    "from the device tree", "from the manual", "from the source", "from published scripts", "from published tables",
    "read on the board",
}  # fmt: skip
"""What docs/targets.md explains."""
P550 = "hifive-premier-p550"


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_each_says_where_its_facts_come_from(target: ShippedTarget) -> None:
    assert target.board and target.trace and target.limits and target.facts
    assert {fact.proved for fact in target.facts} <= PROVED
    assert all(fact.what and fact.source for fact in target.facts)
    assert target.proved[-2:] == ("in the simulator", "on silicon: none yet")
    description = target.description()
    assert description.file == f"shipped target {target.name}"
    bases = [component.base for component in description.components if not getattr(component, "inside", "")]
    assert len(bases) == len(set(bases))


def test_the_page_and_the_library_have_the_same_targets() -> None:
    page = (Path(__file__).parents[4] / "docs/targets.md").read_text()
    assert [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")] == list(target_names())
    assert all(f"| {word}" in page or f", {word}" in page for word in PROVED)


def test_a_name_is_chosen_like_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    found = selected(None, P550, {"openocd_port": 7777, "buffer_start": 0x2_0000_0000}, {})
    assert (found.name, found.openocd.tcl_port) == ("HiFive Premier P550", 7777)
    assert [sink.start for sink in found.sinks] == [0x2_0000_0000]
    assert selected(None, None, {}, {"RVTRACE_TARGET": P550}).name == "HiFive Premier P550"


def test_a_file_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir(P550)  # a folder is no description
    assert load(P550).name == "HiFive Premier P550"
    os.rmdir(P550)
    Path(P550).write_text(shipped("qemu-etrace").text())
    assert load(P550).name == "riscv-virtio,qemu"
    assert path_of(P550) == Path(P550)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("board", 'there is no file and no shipped target "board"; `rvtrace targets` lists them'),
        ("hifive-premier-550", f'there is no file and no shipped target "hifive-premier-550", did you mean "{P550}"?'),
        *[(it, f'there is no file and no shipped target "{it}", did you mean "spacemit-k3"?') for it in ("k3", "K3")],
        ("./hifive", "hifive: cannot be read: No such file or directory"),
        ("hifive.toml", "hifive.toml: cannot be read: No such file or directory"),
    ],
)
def test_what_is_said_of_neither(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DescriptionError) as raised:
        load(text)
    assert str(raised.value) == said
    assert isinstance(raised.value, NotATarget) == ("no shipped target" in said)


def test_a_template_is_not_used_as_it_is() -> None:
    with pytest.raises(NeedsBase, match=r"xuantie is a template: .*`rvtrace targets show xuantie --base ADDRESS -o"):
        load("xuantie")


def test_a_template_at_a_base() -> None:
    target, base = shipped("xuantie"), 0x4_5000_0000
    moved = file.parse(target.text(base), "x").components
    at_zero = target.description().components
    assert [(it.name, it.base) for it in moved] == [(it.name, it.base + base) for it in at_zero]
    assert [sink.start for sink in file.parse(target.text(base), "x").sinks] == [0x3000_0000]
    with pytest.raises(DescriptionError, match="0x4500 is not a multiple of 0x1000"):
        target.text(0x4500)
    with pytest.raises(DescriptionError, match="those of the chip: leave out --base"):
        shipped(P550).text(base)
