"""Takes instructions apart by the tables of `encodings`.

Source: The RISC-V Instruction Set Manual, Volume I, 20240411, 2.2 "Base Instruction Formats", 2.3 "Immediate Encoding
Variants" and chapter 26 "C".
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.transport.simulated.encodings import COMPRESSED, TABLES


class Operation(NamedTuple):
    """One decoded instruction; compressed ones appear as what they expand to, with `length` 2.

    `imm` is signed; for CSR instructions it is the CSR number, for an undecodable word the mnemonic is "illegal".
    """

    name: str
    length: int
    word: int
    rd: int = 0
    rs1: int = 0
    rs2: int = 0
    rs3: int = 0
    imm: int = 0
    rm: int = 0


# Fixed fields: name -> (lowest bit, width).
_FIELDS = {
    "op": (0, 7), "rd": (7, 5), "f3": (12, 3), "rs1": (15, 5), "rs2": (20, 5),
    "f7": (25, 7), "f6": (26, 6), "f5": (27, 5), "f2": (25, 2), "f12": (20, 12),
}  # fmt: skip


def signed(value: int, bits: int) -> int:
    """The low *bits* of *value* as a two's complement number."""
    sign = 1 << (bits - 1)
    return (value & (2 * sign - 1) ^ sign) - sign


def _bits(word: int, low: int, width: int) -> int:
    return word >> low & ((1 << width) - 1)


_IMMEDIATES: dict[str, Callable[[int], int]] = {
    "R": lambda w: 0,
    "I": lambda w: signed(w >> 20, 12),
    "S": lambda w: signed(_bits(w, 25, 7) << 5 | _bits(w, 7, 5), 12),
    "B": lambda w: signed(
        _bits(w, 31, 1) << 12 | _bits(w, 7, 1) << 11 | _bits(w, 25, 6) << 5 | _bits(w, 8, 4) << 1, 13
    ),
    "U": lambda w: signed(w & 0xFFFFF000, 32),
    "J": lambda w: signed(
        _bits(w, 31, 1) << 20 | _bits(w, 12, 8) << 12 | _bits(w, 20, 1) << 11 | _bits(w, 21, 10) << 1, 21
    ),
    "H": lambda w: _bits(w, 20, 6),  # shift amount
    "Z": lambda w: _bits(w, 20, 12),  # CSR number
}


class _Encoding(NamedTuple):
    """A row of the 32-bit tables."""

    name: str
    immediate: Callable[[int], int]
    mask: int
    match: int

    @classmethod
    def parse(cls, row: str) -> "_Encoding":
        name, form, *fixed = row.split()
        mask = match = 0
        for item in fixed:
            field, value = item.split("=")
            low, width = _FIELDS[field]
            if int(value, 16) >> width:
                raise ValueError(f"{row}: {item} does not fit {width} bits")
            mask |= (1 << width) - 1 << low
            match |= int(value, 16) << low
        return cls(name, _IMMEDIATES[form], mask, match)

    def operation(self, word: int) -> Operation | None:
        if word & self.mask != self.match:
            return None
        rd, rm, rs1, rs2, rs3 = (_bits(word, low, width) for low, width in ((7, 5), (12, 3), (15, 5), (20, 5), (27, 5)))
        return Operation(self.name, 4, word, rd, rs1, rs2, rs3, self.immediate(word), rm)


def _bit_range(text: str) -> list[int]:
    high, _, low = text.partition(":")
    return list(range(int(high), int(low or high) - 1, -1))


def _immediate_bits(spec: str) -> list[tuple[int, int]]:
    """'12/5,6:2/4:0' -> pairs of (instruction bit, immediate bit)."""
    pairs: list[tuple[int, int]] = []
    for part in spec.split(","):
        source, target = part.split("/")
        targets = [bit for piece in target.split("|") for bit in _bit_range(piece)]
        pairs += zip(_bit_range(source), targets, strict=True)
    return pairs


class _CompressedEncoding(NamedTuple):
    """A row of the compressed tables."""

    name: str
    mask: int
    match: int
    registers: dict[str, str]
    immediate: list[tuple[int, int]]
    sign: int
    forbidden: list[tuple[str, int]]

    @classmethod
    def parse(cls, row: str) -> "_CompressedEncoding":
        name, pattern, *operands = row.split()
        if len(pattern) != 16:
            raise ValueError(f"{row}: pattern has {len(pattern)} bits")
        registers: dict[str, str] = {}
        immediate: list[tuple[int, int]] = []
        sign = 0
        forbidden = []
        for item in operands:
            key, value = item.replace("!=", "!").replace("=", "!").split("!")
            if "!=" in item:
                forbidden.append((key, int(value)))
            elif key.endswith("imm"):
                immediate = _immediate_bits(value)
                sign = 1 << max(bit for _, bit in immediate) if key == "simm" else 0
            else:
                registers[key] = value
        mask = int("".join("0" if c == "-" else "1" for c in pattern), 2)
        return cls(name, mask, int(pattern.replace("-", "0"), 2), registers, immediate, sign, forbidden)

    def operation(self, word: int) -> Operation | None:
        if word & self.mask != self.match:
            return None
        imm = sum((word >> source & 1) << target for source, target in self.immediate)
        values = {name: _register(word, spec) for name, spec in self.registers.items()}
        operation = Operation(self.name, 2, word, imm=(imm ^ self.sign) - self.sign, **values)
        if any(getattr(operation, field) == value for field, value in self.forbidden):
            return None
        return operation


def _register(word: int, spec: str) -> int:
    number = int(spec[1:])
    if spec[0] == "x":
        return number
    return _bits(word, number, 5) if spec[0] == "r" else 8 + _bits(word, number, 3)


def _rows(groups: Iterable[str]) -> Iterator[str]:
    for group in groups:
        for line in TABLES.get(group, "").splitlines():
            yield from (row.strip() for row in line.split("|") if row.strip())


class Decoder:
    """Decodes the instructions of one XLEN and set of single-letter extensions."""

    def __init__(self, xlen: int, extensions: str) -> None:
        groups = [group for letter in extensions for group in (letter, f"{letter}{xlen}")]
        self._wide: dict[int, list[_Encoding]] = {}
        for row in _rows(groups):
            encoding = _Encoding.parse(row)
            self._wide.setdefault(encoding.match & 0x7F, []).append(encoding)
        self._compressed: list[_CompressedEncoding] = []
        if "C" in extensions:
            groups = ["C", f"C{xlen}", *(f"C{x}{n}" for x in "FD" if x in extensions for n in ("", xlen))]
            self._compressed = [_CompressedEncoding.parse(row) for row in _compressed_rows(groups)]

    def decode(self, word: int) -> Operation:
        """The operation *word* encodes; of a compressed instruction only the low 16 bits are looked at."""
        length = instruction_length(word)
        word &= (1 << 8 * length) - 1
        candidates: Iterable[_Encoding | _CompressedEncoding]
        candidates = self._compressed if length == 2 else self._wide.get(word & 0x7F, ())
        for encoding in candidates:
            operation = encoding.operation(word)
            if operation is not None:
                return operation
        return Operation("illegal", length, word)


def _compressed_rows(groups: Iterable[str]) -> Iterator[str]:
    """Compressed rows use '|' inside immediates, so there is one to a line."""
    for group in groups:
        yield from (line.strip() for line in COMPRESSED.get(group, "").splitlines() if line.strip())


def instruction_length(word: int) -> int:
    """2 or 4 bytes. Longer encodings are illegal here and count as 4, the part that goes to mtval."""
    return 4 if word & 3 == 3 else 2
