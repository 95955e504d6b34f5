"""Captures of several runs."""

from pathlib import Path

from tests.reports.coverage.traced import PROGRAMS, program, retired, trace

SOURCE = str(PROGRAMS.parent / "conditions" / "main.c")


def three_runs(folder: Path) -> list[Path]:
    """Three runs of one program that has decisions, of different lengths and formats."""
    elf = program(folder / "program", [Path(SOURCE)])
    pcs = retired(elf)
    return [
        trace(elf, pcs, folder / "a.rvt", "--ntrace"),
        trace(elf, pcs[: len(pcs) // 2], folder / "b.rvt", "--etrace"),
        trace(elf, pcs[: len(pcs) // 3], folder / "c.rvt", "--ntrace"),
    ]
