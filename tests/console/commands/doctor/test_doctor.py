"""`rvtrace doctor`: what is here is found with its version, what is missing says what to install, gdb is tried."""

import json
import platform
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.commands.doctor import CHECKS, installation
from rvtrace_gdb.console.commands.doctor.adapters import found_adapters
from rvtrace_gdb.console.commands.doctor.finding import Usability, this_system
from rvtrace_gdb.console.commands.doctor.gdbs import found_gdb
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.target.usb_access import UsbFiles
from rvtrace_gdb.transport.qemu import launch
from tests.gdbext.gdb_process import GDB, HOME

PAGE = (HOME / "docs" / "installation.md").read_text(encoding="utf-8")
OF_DEVELOPERS = {"test", "check", "docs"}


def program(folder: Path, name: str, text: str, errors: str = "") -> None:
    """Make a program that prints *text* whatever its arguments are."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n/bin/cat <<'E'\n{text}\nE\n/bin/cat >&2 <<'E'\n{errors}\nE\n")
    file.chmod(0o755)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("RVTRACE_GDB", raising=False)
    return folder


def doctor(capsys: pytest.CaptureFixture[str], *names: str, status: int = 0) -> list[dict[str, Any]]:
    assert main(["doctor", *names, "--json"]) == status
    said = capsys.readouterr()
    assert said.err == ""
    return [json.loads(line) for line in said.out.splitlines()]


def test_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    """What the tests themselves need is found; versions are those that Debian's packages have."""
    found = {row["name"]: row for row in doctor(capsys)}
    assert list(found) == list(CHECKS)
    packaged = {"gdb": "gdb-multiarch", "openocd": "openocd", "qemu": "qemu-system-misc", "dtc": "device-tree-compiler"}
    for name, package in packaged.items():
        words = ["dpkg-query", "--show", "--showformat=${Version}", package]
        version = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        told = ".".join(found[name]["version"].split(".")[:2])  # QEMU's third number is none of the package's
        assert version.split(":")[-1].startswith(told) and re.fullmatch(r"\d+\.\d+", told)
    assert found["gdb"]["state"] in ("ok", "limited") and "knows RISC-V" in found["gdb"]["facts"]
    assert {found[name]["state"] for name in ("rvtrace", "openocd", "console", "views", "cluster")} == {"ok"}
    keys = {key for row in found.values() for key in row}
    assert {key for key in keys if f"`{key}`" not in PAGE} == set()


def test_what_is_missing_says_what_to_install(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gdb, openocd = doctor(capsys, "gdb", "openocd", status=1)
    assert gdb["state"] == openocd["state"] == "missing"
    assert gdb["install"] == {"debian": "apt install gdb-multiarch", "fedora": "dnf install gdb"}
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > len(CHECKS) and max(map(len, lines)) <= 80
    assert [line for line in lines if line.startswith("missing   OpenOCD: ")] != []


SAID = {
    "openocd": (
        ("Open On-Chip Debugger 0.11.0-rc2", "limited"), ("Open On-Chip Debugger 0.12.0", "ok"),
        ("xPack Open On-Chip Debugger 0.12.0+dev-01557-gdd1758272 (2024-04-02-07:27)", "ok"),
    ),
    "qemu": (
        ("QEMU emulator version 5.2.0 (Debian 1:5.2+dfsg-11+deb11u3)", "unusable"),
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", "limited"),
        ("QEMU emulator version 9.2.4 (qemu-9.2.4-2.fc42)", "limited"), ("QEMU emulator version 10.0.3", "ok"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_versions_lack(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, state in SAID[name]:
        program(here, {"openocd": "openocd", "qemu": "qemu-system-riscv64"}[name], text)
        (found,) = doctor(capsys, name, status=int(state == "unusable"))
        assert found["state"] == state and found["version"] in text
    assert launch.PLUGIN_SINCE == (9, 1)  # as the text says


def test_a_gdb_that_cannot_be_used(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = "GNU gdb (GDB) 12.1\nThe target architecture is set to \"riscv:rv64\"."
    program(here, "gdb", version, "Python scripting is not supported in this copy of GDB.")
    found = found_gdb()
    assert (found.state, found.version) == (Usability.UNUSABLE, "12.1")
    assert found.notes == (
        "it was built without Python, or its Python does not work: Python scripting is not supported in this copy of"
        " GDB.",
    )
    program(here, "gdb", "", "gdb: error while loading shared libraries: libpython3.11.so.1.0")
    assert "libpython3.11.so.1.0" in found_gdb().notes[0]
    monkeypatch.setenv("RVTRACE_GDB", "no-such-gdb")
    found = found_gdb()
    assert found.state is Usability.MISSING and found.notes[0].startswith("no-such-gdb: there is no such program")


def test_a_gdb_whose_session_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVTRACE_GDB", GDB)
    monkeypatch.setenv("RVTRACE_PYTHON", "/no/python")
    found = found_gdb()
    assert found.state is Usability.UNUSABLE and "$RVTRACE_PYTHON leads to /no/python" in found.notes[0]


def test_all_extras_that_users_install_are_looked_at() -> None:
    """With the limits that pyproject.toml has."""
    extras = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras.keys() - OF_DEVELOPERS == extras.keys() & CHECKS.keys()
    for extra in extras.keys() - OF_DEVELOPERS:
        packages = extras[extra]
        known = installation.requirements()[extra]
        names = [re.split(r"[^\w.-]", package)[0] for package in packages]
        assert [package.name.replace("_", "-").lower() for package in known] == [name.lower() for name in names]
    views = {package.name: package.least for package in installation.requirements()["views"]}
    assert views["perfetto"] == "0.50" and views["protobuf"] == "5"


def test_an_extra_that_is_missing_or_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"views": (installation.Requirement("pytest", "1000.1", ""), installation.Requirement("nowhere", "", ""))}
    monkeypatch.setattr(installation, "requirements", lambda: wanted)
    found = installation.found_extra(installation.VIEWS)
    assert found.state is Usability.MISSING and found.packages.command.endswith("-m pip install 'rvtrace-gdb[views]'")
    assert found.notes[0].endswith(" is too old: 1000.1 is needed") and found.notes[1] == "nowhere is not installed"
    monkeypatch.setattr(installation, "find_spec", lambda name: None)  # as in what `uv tool install` makes
    found = installation.found_extra(installation.VIEWS)
    assert re.fullmatch(r"uv pip install --python \S+ 'rvtrace-gdb\[views\]'", found.packages.command)


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVTRACE_CACHE", str(tmp_path / "a" / "b"))
    assert installation.found_cache().state is Usability.OK and list(tmp_path.iterdir()) == []
    (tmp_path / "a").write_text("")
    assert installation.found_cache().notes[0] == f"{tmp_path / 'a'} is not a folder"
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("RVTRACE_CACHE", str(open_to_all))
    assert "everybody can write" in installation.found_cache().notes[0]
    monkeypatch.setenv("RVTRACE_CACHE", "/proc/nobody/writes/here")
    assert installation.found_cache().state is Usability.UNUSABLE
    monkeypatch.setenv("RVTRACE_CACHE", "")
    assert installation.found_cache().state is Usability.LIMITED


def test_adapters(tmp_path: Path) -> None:
    """The files as Linux has them for devices, an interface of one, and a hub; the rule as OpenOCD's package has it."""
    facts = {"1-2": ("303a", "1001", "1", "7"), "1-2:1.0": (), "1-3": ("0403", "6014", "1", "12"),
             "usb1": ("1d6b", "0002", "1", "1")}  # fmt: skip
    for name, values in facts.items():
        folder = tmp_path / "devices" / name
        folder.mkdir(parents=True)
        for file, value in zip(("idVendor", "idProduct", "busnum", "devnum"), values, strict=False):
            (folder / file).write_text(value + "\n")
    rules = tmp_path / "rules"
    rules.mkdir()
    nodes = tmp_path / "bus"
    files = UsbFiles(tmp_path / "devices", nodes, (rules,), lambda node: node == nodes / "001" / "012")
    found = found_adapters(files)
    assert found.state is Usability.LIMITED and len(found.facts) == 2
    (note,) = found.notes
    assert "Espressif USB-JTAG" in note and 'ATTR{idVendor}=="303a", ATTR{idProduct}=="1001"' in note
    assert found_adapters(UsbFiles(tmp_path / "devices", nodes, (), lambda node: False)).state is Usability.UNUSABLE
    (rules / "60-openocd.rules").write_text('ATTRS{idVendor}=="0403", ATTRS{idProduct}=="6010", MODE="660"\n')
    found = found_adapters(UsbFiles(tmp_path / "none", nodes, (rules,)))
    assert found.state is Usability.MISSING
    assert found.notes[1:] == (
        "a rule of udev names FTDI MPSSE adapters",
        "no rule of udev names Espressif USB-JTAG adapters: OpenOCD's package has one",
    )


@pytest.mark.parametrize(("release", "system"), [
    ({"ID": "debian"}, "debian"), ({"ID": "ubuntu", "ID_LIKE": "debian"}, "debian"),
    ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "debian"), ({"ID": "fedora"}, "fedora"),
    ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "fedora"), ({"ID": "arch"}, ""),
])  # fmt: skip
def test_whose_packages_are_named(release: dict[str, str], system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    assert this_system() == system
