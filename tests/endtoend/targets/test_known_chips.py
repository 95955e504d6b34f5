"""What `trace connect` and `rvtrace init` say of a chip that rvtrace knows, and the description that is written then.

The chip is known by the identity of its harts, by its IDCODE, and by a device tree in its memory: real gdb and OpenOCD.
"""

import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.description.file import load
from rvtrace_gdb.session.description.library.shipped import shipped
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.session.description.devicetrees import compiled as compiled_tree
from tests.transport.simulated.harts import PROGRAMS, compiled

P550 = "hifive-premier-p550"
TREE = 0x8002_0000
BOARD = '/dts-v1/; / { compatible = "sifive,hifive-premier-p550", "eswin,eic7700"; model = "Premier"; };'
KNOWN = (
    'its device tree is compatible with "sifive,hifive-premier-p550"',
    "mvendorid 0x489, marchid 0x8000000000000008",
)


def booted(folder: Path) -> Path:
    """A program that firmware has started: a0 is the hart's number, a1 the address of the device tree."""
    (folder / "tree.dtb").write_bytes(compiled_tree(BOARD))
    source = folder / "boot.S"
    source.write_text(
        f".globl _start, before\nbefore: csrr a0, mhartid\nli a1, {TREE}\n_start: j _start\n"
        f'.section .tree, "aw"\n.incbin "{folder}/tree.dtb"\n'
    )
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr", "-mabi=lp64", "-nostdlib", "-Wl,-n"]
    command += ["-Wl,-Ttext=0x80000000", f"-Wl,--section-start=.tree={TREE:#x}", str(source)]
    subprocess.run([*command, "-o", str(folder / "boot.elf")], check=True)
    return folder / "boot.elf"


def test_by_the_identity_of_its_harts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf, written = compiled(tmp_path, PROGRAMS / "meet.c", options=("-DHARTS=4",)), tmp_path / "rvtrace.toml"
    with Rig(elf, tmp_path / "rig", "--target", P550) as rig:
        connect = f"trace connect :{rig.gdb_port}"
        # The folder of the program has no description, and nothing names one.
        said = run_gdb(elf, [SOURCE, connect, f"set trace target {P550}", f"{connect} "])
        words = ["init", "--openocd", str(rig.folder / "openocd.cfg"), "-o", str(written), "--elf", str(elf)]
        assert main(words) == 0
        found = capsys.readouterr().err
        assert main([*words, "--force", "--known", "none"]) == 1
    line = (
        f"No target description is set, and it is SiFive HiFive Premier P550 (ESWIN EIC7700X) ({KNOWN[1]}), which"
        f" rvtrace knows as {P550}: `set trace target {P550}` takes its description."
    )
    assert line in said[connect].splitlines()
    assert "which rvtrace knows" not in said[f"{connect} "]
    assert f"the chip: it is SiFive HiFive Premier P550 (ESWIN EIC7700X) ({KNOWN[1]}), which rvtrace knows as" in found
    description = load(written)
    assert description.components == shipped(P550).description().components
    assert description.openocd.tcl_port == rig.tcl_port
    text = written.read_text()
    assert f"# Target description, written by rvtrace init: the shipped target {P550} (the chip has {KNOWN[1]})" in text
    assert "# Proved: from published scripts; in the simulator; on silicon: none yet." in text


def test_by_its_idcode_and_by_a_device_tree_in_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An IDCODE alone is that of AMD's template, whose addresses are the design's."""
    elf, written = booted(tmp_path), tmp_path / "board.toml"
    with Rig(elf, tmp_path / "rig", "--target", "microblaze-v") as rig:
        connect = f"trace connect :{rig.gdb_port}"
        boot = ["set var $pc = (long) &before", "tbreak *_start", "continue"]
        said = run_gdb(elf, [SOURCE, connect, *boot, "disconnect", f"{connect} "])
        words = ["init", "--openocd", str(rig.folder / "openocd.cfg"), "-o", str(written)]
        assert main([*words, "--device-tree", f"{TREE:#x}"]) == 0
        found = capsys.readouterr().err
        assert main([*words, "--force", "--device-tree", "0x80000000"]) == 1
        refused = capsys.readouterr().err
    [template] = [line for line in said[connect].splitlines() if "which rvtrace knows" in line][:1]
    assert template.startswith("No target description is set, and it may be AMD MicroBlaze V")
    assert "(IDCODE 0x00000093), which rvtrace knows as microblaze-v: `rvtrace targets show microblaze-v`" in template
    [line] = [line for line in said[f"{connect} "].splitlines() if "which rvtrace knows" in line]
    assert f"it is SiFive HiFive Premier P550 (ESWIN EIC7700X) ({KNOWN[0]})" in line
    assert f"hart 0 has {TREE:#x} in a1: where it was just booted, a device tree is there" in found
    assert load(written).components == shipped(P550).description().components
    assert "rvtrace: --device-tree: memory at 0x80000000: there is no device tree: it begins with" in refused
