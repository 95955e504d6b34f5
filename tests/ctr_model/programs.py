"""Building the programs of tests/programs/ctr, for either version of Control Transfer Records."""

from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.helpers.compiled import elf_bytes

SOURCES = Path(__file__).resolve().parent.parent / "programs" / "ctr"
_ABI = {"rv64": "lp64", "rv32": "ilp32"}


def build(folder: Path, name: str, version: str = "1.0", march: str = "rv64imac_zicsr") -> Path:
    """The ELF of SOURCES/*name*.S in *folder*; *version* "none": without what it writes to CSRs of CTR."""
    elf = folder / f"{name}-{version}-{march}.elf"
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={_ABI[march[:4]]}", "-mcmodel=medany", "-g"]
    command += ["-nostdlib", "-nostartfiles", "-Wl,--no-warn-rwx-segments", "-T", str(SOURCES / "ctr.ld")]
    command += {"1.0": [], "0.1.4": ["-DCTR_0_1_4"], "none": ["-DCTR_NONE"]}[version]
    source = SOURCES / f"{name}.S"
    elf.write_bytes(elf_bytes([*command, f"-I{SOURCES}", str(source)], [source]))
    return elf


def symbols(elf: Path) -> dict[str, int]:
    """Global symbols."""
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return {symbol.name: int(symbol["st_value"]) for symbol in table.iter_symbols() if symbol.name}


def looks(elf: Path) -> dict[int, str]:
    """Where to look: address -> name, of the labels look_NAME."""
    return {at: name.removeprefix("look_") for name, at in symbols(elf).items() if name.startswith("look_")}
