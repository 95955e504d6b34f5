"""The instruction encodings as tables, and taking instructions apart by them.

A row of the 32-bit tables names the mnemonic, the immediate's format and the fixed fields (hexadecimal). A row of the
compressed table names the instruction it expands to, its 16 bits ('-' is free), and where the operands are. The first
matching row wins.

Sources: The RISC-V Instruction Set Manual, Volume I, 20240411, 2.2 "Base Instruction Formats", 2.3 "Immediate Encoding
Variants", chapter 34 "RV32/64G Instruction Set Listings", chapter 26 "C" (tables of 26.8), 27 "Zc", 28 "B" and 12
"Zicond"; Volume II, 20240411, for MRET, SRET, WFI; CTR 1.0 for SCTRCLR.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

# Extension and XLEN groups; "D64" means: with extension D, XLEN 64 only.
TABLES = {
    "I": """
        lui    U op=37            | auipc  U op=17            | jal    J op=6f            | jalr   I op=67 f3=0
        beq    B op=63 f3=0       | bne    B op=63 f3=1       | blt    B op=63 f3=4       | bge    B op=63 f3=5
        bltu   B op=63 f3=6       | bgeu   B op=63 f3=7
        lb     I op=03 f3=0       | lh     I op=03 f3=1       | lw     I op=03 f3=2
        lbu    I op=03 f3=4       | lhu    I op=03 f3=5
        sb     S op=23 f3=0       | sh     S op=23 f3=1       | sw     S op=23 f3=2
        addi   I op=13 f3=0       | slti   I op=13 f3=2       | sltiu  I op=13 f3=3
        xori   I op=13 f3=4       | ori    I op=13 f3=6       | andi   I op=13 f3=7
        add    R op=33 f3=0 f7=00 | sub    R op=33 f3=0 f7=20 | sll    R op=33 f3=1 f7=00 | slt    R op=33 f3=2 f7=00
        sltu   R op=33 f3=3 f7=00 | xor    R op=33 f3=4 f7=00 | srl    R op=33 f3=5 f7=00 | sra    R op=33 f3=5 f7=20
        or     R op=33 f3=6 f7=00 | and    R op=33 f3=7 f7=00
        fence  R op=0f f3=0       | fence.i R op=0f f3=1
        ecall  R op=73 f3=0 rd=0 rs1=0 f12=000 | ebreak R op=73 f3=0 rd=0 rs1=0 f12=001
        mret   R op=73 f3=0 rd=0 rs1=0 f12=302 | wfi    R op=73 f3=0 rd=0 rs1=0 f12=105
        sctrclr R op=73 f3=0 rd=0 rs1=0 f12=104
        csrrw  Z op=73 f3=1       | csrrs  Z op=73 f3=2       | csrrc  Z op=73 f3=3
        csrrwi Z op=73 f3=5       | csrrsi Z op=73 f3=6       | csrrci Z op=73 f3=7""",
    "I32": """
        slli   H op=13 f3=1 f7=00 | srli   H op=13 f3=5 f7=00 | srai   H op=13 f3=5 f7=20""",
    "I64": """
        slli   H op=13 f3=1 f6=00 | srli   H op=13 f3=5 f6=00 | srai   H op=13 f3=5 f6=10
        lwu    I op=03 f3=6       | ld     I op=03 f3=3       | sd     S op=23 f3=3
        addiw  I op=1b f3=0       | slliw  H op=1b f3=1 f7=00 | srliw  H op=1b f3=5 f7=00 | sraiw  H op=1b f3=5 f7=20
        addw   R op=3b f3=0 f7=00 | subw   R op=3b f3=0 f7=20
        sllw   R op=3b f3=1 f7=00 | srlw   R op=3b f3=5 f7=00 | sraw   R op=3b f3=5 f7=20""",
    "M": """
        mul    R op=33 f3=0 f7=01 | mulh   R op=33 f3=1 f7=01 | mulhsu R op=33 f3=2 f7=01 | mulhu  R op=33 f3=3 f7=01
        div    R op=33 f3=4 f7=01 | divu   R op=33 f3=5 f7=01 | rem    R op=33 f3=6 f7=01
        remu   R op=33 f3=7 f7=01""",
    "M64": """
        mulw   R op=3b f3=0 f7=01 | divw   R op=3b f3=4 f7=01 | divuw  R op=3b f3=5 f7=01
        remw   R op=3b f3=6 f7=01 | remuw  R op=3b f3=7 f7=01""",
    "A": """
        lr.w      R op=2f f3=2 f5=02 rs2=0 | sc.w      R op=2f f3=2 f5=03
        amoswap.w R op=2f f3=2 f5=01 | amoadd.w  R op=2f f3=2 f5=00 | amoxor.w  R op=2f f3=2 f5=04
        amoand.w  R op=2f f3=2 f5=0c | amoor.w   R op=2f f3=2 f5=08 | amomin.w  R op=2f f3=2 f5=10
        amomax.w  R op=2f f3=2 f5=14 | amominu.w R op=2f f3=2 f5=18 | amomaxu.w R op=2f f3=2 f5=1c""",
    "A64": """
        lr.d      R op=2f f3=3 f5=02 rs2=0 | sc.d      R op=2f f3=3 f5=03
        amoswap.d R op=2f f3=3 f5=01 | amoadd.d  R op=2f f3=3 f5=00 | amoxor.d  R op=2f f3=3 f5=04
        amoand.d  R op=2f f3=3 f5=0c | amoor.d   R op=2f f3=3 f5=08 | amomin.d  R op=2f f3=3 f5=10
        amomax.d  R op=2f f3=3 f5=14 | amominu.d R op=2f f3=3 f5=18 | amomaxu.d R op=2f f3=3 f5=1c""",
    "F": """
        flw       I op=07 f3=2       | fsw       S op=27 f3=2
        fmadd.s   R op=43 f2=0       | fmsub.s   R op=47 f2=0       | fnmsub.s  R op=4b f2=0
        fnmadd.s R op=4f f2=0
        fadd.s    R op=53 f7=00      | fsub.s    R op=53 f7=04      | fmul.s    R op=53 f7=08
        fdiv.s   R op=53 f7=0c
        fsqrt.s   R op=53 f7=2c rs2=0
        fsgnj.s   R op=53 f7=10 f3=0 | fsgnjn.s  R op=53 f7=10 f3=1 | fsgnjx.s  R op=53 f7=10 f3=2
        fmin.s    R op=53 f7=14 f3=0 | fmax.s    R op=53 f7=14 f3=1
        fle.s     R op=53 f7=50 f3=0 | flt.s     R op=53 f7=50 f3=1 | feq.s     R op=53 f7=50 f3=2
        fcvt.w.s  R op=53 f7=60 rs2=0 | fcvt.wu.s R op=53 f7=60 rs2=1
        fcvt.s.w  R op=53 f7=68 rs2=0 | fcvt.s.wu R op=53 f7=68 rs2=1
        fmv.x.w   R op=53 f7=70 rs2=0 f3=0 | fclass.s R op=53 f7=70 rs2=0 f3=1 | fmv.w.x R op=53 f7=78 rs2=0 f3=0""",
    "F64": """
        fcvt.l.s  R op=53 f7=60 rs2=2 | fcvt.lu.s R op=53 f7=60 rs2=3
        fcvt.s.l  R op=53 f7=68 rs2=2 | fcvt.s.lu R op=53 f7=68 rs2=3""",
    "D": """
        fld       I op=07 f3=3       | fsd       S op=27 f3=3
        fmadd.d   R op=43 f2=1       | fmsub.d   R op=47 f2=1       | fnmsub.d  R op=4b f2=1
        fnmadd.d R op=4f f2=1
        fadd.d    R op=53 f7=01      | fsub.d    R op=53 f7=05      | fmul.d    R op=53 f7=09
        fdiv.d   R op=53 f7=0d
        fsqrt.d   R op=53 f7=2d rs2=0
        fsgnj.d   R op=53 f7=11 f3=0 | fsgnjn.d  R op=53 f7=11 f3=1 | fsgnjx.d  R op=53 f7=11 f3=2
        fmin.d    R op=53 f7=15 f3=0 | fmax.d    R op=53 f7=15 f3=1
        fcvt.s.d  R op=53 f7=20 rs2=1 | fcvt.d.s R op=53 f7=21 rs2=0
        fle.d     R op=53 f7=51 f3=0 | flt.d     R op=53 f7=51 f3=1 | feq.d     R op=53 f7=51 f3=2
        fcvt.w.d  R op=53 f7=61 rs2=0 | fcvt.wu.d R op=53 f7=61 rs2=1
        fcvt.d.w  R op=53 f7=69 rs2=0 | fcvt.d.wu R op=53 f7=69 rs2=1
        fclass.d  R op=53 f7=71 rs2=0 f3=1""",
    "D64": """
        fcvt.l.d  R op=53 f7=61 rs2=2 | fcvt.lu.d R op=53 f7=61 rs2=3
        fcvt.d.l  R op=53 f7=69 rs2=2 | fcvt.d.lu R op=53 f7=69 rs2=3
        fmv.x.d   R op=53 f7=71 rs2=0 f3=0 | fmv.d.x R op=53 f7=79 rs2=0 f3=0""",
    "S": """
        sret   R op=73 f3=0 rd=0 rs1=0 f12=102""",
    "Zba": """
        sh1add R op=33 f3=2 f7=10 | sh2add R op=33 f3=4 f7=10 | sh3add R op=33 f3=6 f7=10""",
    "Zba64": """
        add.uw R op=3b f3=0 f7=04 | slli.uw H op=1b f3=1 f6=02
        sh1add.uw R op=3b f3=2 f7=10 | sh2add.uw R op=3b f3=4 f7=10 | sh3add.uw R op=3b f3=6 f7=10""",
    "Zbb": """
        andn   R op=33 f3=7 f7=20 | orn    R op=33 f3=6 f7=20 | xnor   R op=33 f3=4 f7=20
        clz    R op=13 f3=1 f12=600 | ctz  R op=13 f3=1 f12=601 | cpop R op=13 f3=1 f12=602
        sext.b R op=13 f3=1 f12=604 | sext.h R op=13 f3=1 f12=605 | orc.b R op=13 f3=5 f12=287
        min    R op=33 f3=4 f7=05 | minu   R op=33 f3=5 f7=05 | max    R op=33 f3=6 f7=05 | maxu   R op=33 f3=7 f7=05
        rol    R op=33 f3=1 f7=30 | ror    R op=33 f3=5 f7=30""",
    "Zbb32": """
        zext.h R op=33 f3=4 f7=04 rs2=0 | rori H op=13 f3=5 f7=30 | rev8 R op=13 f3=5 f12=698""",
    "Zbb64": """
        zext.h R op=3b f3=4 f7=04 rs2=0 | rori H op=13 f3=5 f6=18 | rev8 R op=13 f3=5 f12=6b8
        clzw   R op=1b f3=1 f12=600 | ctzw R op=1b f3=1 f12=601 | cpopw R op=1b f3=1 f12=602
        rolw   R op=3b f3=1 f7=30 | rorw   R op=3b f3=5 f7=30 | roriw  H op=1b f3=5 f7=30""",
    "Zbs": """
        bclr   R op=33 f3=1 f7=24 | bext   R op=33 f3=5 f7=24
        binv   R op=33 f3=1 f7=34 | bset   R op=33 f3=1 f7=14""",
    "Zbs32": """
        bclri  H op=13 f3=1 f7=24 | bexti  H op=13 f3=5 f7=24
        binvi  H op=13 f3=1 f7=34 | bseti  H op=13 f3=1 f7=14""",
    "Zbs64": """
        bclri  H op=13 f3=1 f6=12 | bexti  H op=13 f3=5 f6=12
        binvi  H op=13 f3=1 f6=1a | bseti  H op=13 f3=1 f6=0a""",
    "Zbc": """
        clmul  R op=33 f3=1 f7=05 | clmulr R op=33 f3=2 f7=05 | clmulh R op=33 f3=3 f7=05""",
    "Zicond": """
        czero.eqz R op=33 f3=5 f7=07 | czero.nez R op=33 f3=7 f7=07""",
}

# Registers: r7 the five bits from bit 7, c7 the three bits from bit 7 (x8..x15), x2 always x2.
# Immediates as the manual draws them: instruction bits / immediate bits, highest first; "simm" is sign-extended.
COMPRESSED = {
    "C": """
        addi   000-----------00 rd=c2 rs1=x2 imm=12:5/5:4|9:6|2|3 imm!=0
        lw     010-----------00 rd=c2 rs1=c7 imm=12:10/5:3,6:5/2|6
        sw     110-----------00 rs1=c7 rs2=c2 imm=12:10/5:3,6:5/2|6
        addi   000-----------01 rd=r7 rs1=r7 simm=12/5,6:2/4:0
        addi   010-----------01 rd=r7 rs1=x0 simm=12/5,6:2/4:0
        addi   011-00010-----01 rd=x2 rs1=x2 simm=12/9,6:2/4|6|8:7|5 imm!=0
        lui    011-----------01 rd=r7 simm=12/17,6:2/16:12 imm!=0 rd!=2
        andi   100-10--------01 rd=c7 rs1=c7 simm=12/5,6:2/4:0
        sub    100011---00---01 rd=c7 rs1=c7 rs2=c2
        xor    100011---01---01 rd=c7 rs1=c7 rs2=c2
        or     100011---10---01 rd=c7 rs1=c7 rs2=c2
        and    100011---11---01 rd=c7 rs1=c7 rs2=c2
        jal    101-----------01 rd=x0 simm=12:2/11|4|9:8|10|6|7|3:1|5
        beq    110-----------01 rs1=c7 rs2=x0 simm=12:10/8|4:3,6:2/7:6|2:1|5
        bne    111-----------01 rs1=c7 rs2=x0 simm=12:10/8|4:3,6:2/7:6|2:1|5
        lw     010-----------10 rd=r7 rs1=x2 imm=12/5,6:2/4:2|7:6 rd!=0
        jalr   1000-----0000010 rd=x0 rs1=r7 rs1!=0
        add    1000----------10 rd=r7 rs1=x0 rs2=r2 rs2!=0
        ebreak 1001000000000010
        jalr   1001-----0000010 rd=x1 rs1=r7 rs1!=0
        add    1001----------10 rd=r7 rs1=r7 rs2=r2 rs2!=0
        sw     110-----------10 rs1=x2 rs2=r2 imm=12:7/5:2|7:6""",
    "C32": """
        jal    001-----------01 rd=x1 simm=12:2/11|4|9:8|10|6|7|3:1|5
        srli   100000--------01 rd=c7 rs1=c7 imm=6:2/4:0
        srai   100001--------01 rd=c7 rs1=c7 imm=6:2/4:0
        slli   0000----------10 rd=r7 rs1=r7 imm=6:2/4:0""",
    "C64": """
        ld     011-----------00 rd=c2 rs1=c7 imm=12:10/5:3,6:5/7:6
        sd     111-----------00 rs1=c7 rs2=c2 imm=12:10/5:3,6:5/7:6
        addiw  001-----------01 rd=r7 rs1=r7 simm=12/5,6:2/4:0 rd!=0
        srli   100-00--------01 rd=c7 rs1=c7 imm=12/5,6:2/4:0
        srai   100-01--------01 rd=c7 rs1=c7 imm=12/5,6:2/4:0
        subw   100111---00---01 rd=c7 rs1=c7 rs2=c2
        addw   100111---01---01 rd=c7 rs1=c7 rs2=c2
        slli   000-----------10 rd=r7 rs1=r7 imm=12/5,6:2/4:0
        ld     011-----------10 rd=r7 rs1=x2 imm=12/5,6:2/4:3|8:6 rd!=0
        sd     111-----------10 rs1=x2 rs2=r2 imm=12:7/5:3|8:6""",
    "CF32": """
        flw    011-----------00 rd=c2 rs1=c7 imm=12:10/5:3,6:5/2|6
        fsw    111-----------00 rs1=c7 rs2=c2 imm=12:10/5:3,6:5/2|6
        flw    011-----------10 rd=r7 rs1=x2 imm=12/5,6:2/4:2|7:6
        fsw    111-----------10 rs1=x2 rs2=r2 imm=12:7/5:2|7:6""",
    "CD": """
        fld    001-----------00 rd=c2 rs1=c7 imm=12:10/5:3,6:5/7:6
        fsd    101-----------00 rs1=c7 rs2=c2 imm=12:10/5:3,6:5/7:6
        fld    001-----------10 rd=r7 rs1=x2 imm=12/5,6:2/4:3|8:6
        fsd    101-----------10 rs1=x2 rs2=r2 imm=12:7/5:3|8:6""",
    "Zcb": """
        lbu    100000--------00 rd=c2 rs1=c7 imm=6:5/0|1
        lhu    100001---0----00 rd=c2 rs1=c7 imm=5/1
        lh     100001---1----00 rd=c2 rs1=c7 imm=5/1
        sb     100010--------00 rs1=c7 rs2=c2 imm=6:5/0|1
        sh     100011---0----00 rs1=c7 rs2=c2 imm=5/1
        zext.b 100111---1100001 rd=c7 rs1=c7
        sext.b 100111---1100101 rd=c7 rs1=c7
        zext.h 100111---1101001 rd=c7 rs1=c7
        sext.h 100111---1101101 rd=c7 rs1=c7
        not    100111---1110101 rd=c7 rs1=c7
        mul    100111---10---01 rd=c7 rs1=c7 rs2=c2""",
    "Zcb64": """
        zext.w 100111---1110001 rd=c7 rs1=c7""",
}


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
    """Return the low *bits* of *value* as a two's complement number."""
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


class _EncodingRow(NamedTuple):
    """A row of the 32-bit tables."""

    name: str
    immediate: Callable[[int], int]
    mask: int
    match: int

    @classmethod
    def parse(cls, row: str) -> "_EncodingRow":
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
    """Return pairs of (instruction bit, immediate bit) for a specification such as '12/5,6:2/4:0'."""
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
        values = {name: _register_operand(word, spec) for name, spec in self.registers.items()}
        operation = Operation(self.name, 2, word, imm=(imm ^ self.sign) - self.sign, **values)
        if any(getattr(operation, field) == value for field, value in self.forbidden):
            return None
        return operation


def _register_operand(word: int, spec: str) -> int:
    number = int(spec[1:])
    if spec[0] == "x":
        return number
    return _bits(word, number, 5) if spec[0] == "r" else 8 + _bits(word, number, 3)


def _rows(groups: Iterable[str]) -> Iterator[str]:
    for group in groups:
        for line in TABLES.get(group, "").splitlines():
            yield from (row.strip() for row in line.split("|") if row.strip())


class Decoder:
    """Decodes the instructions of one XLEN and set of extensions: their names, of which "IMAC" has four."""

    def __init__(self, xlen: int, extensions: Iterable[str]) -> None:
        extensions = tuple(extensions)
        groups = [group for name in extensions for group in (name, f"{name}{xlen}")]
        self._wide: dict[int, list[_EncodingRow]] = {}
        for row in _rows(groups):
            encoding = _EncodingRow.parse(row)
            self._wide.setdefault(encoding.match & 0x7F, []).append(encoding)
        self._compressed: list[_CompressedEncoding] = []
        if "C" in extensions:
            groups = ["C", f"C{xlen}", *(f"C{x}{n}" for x in "FD" if x in extensions for n in ("", xlen))]
            groups += ["Zcb", f"Zcb{xlen}"] if "Zcb" in extensions else []
            self._compressed = [_CompressedEncoding.parse(row) for row in _compressed_rows(groups)]

    def decode(self, word: int) -> Operation:
        """Return the operation that *word* encodes; of a compressed instruction only the low 16 bits count."""
        length = instruction_length(word)
        word &= (1 << 8 * length) - 1
        candidates: Iterable[_EncodingRow | _CompressedEncoding]
        candidates = self._compressed if length == 2 else self._wide.get(word & 0x7F, ())
        for encoding in candidates:
            operation = encoding.operation(word)
            if operation is not None:
                return operation
        return Operation("illegal", length, word)


def _compressed_rows(groups: Iterable[str]) -> Iterator[str]:
    """Yield the rows of compressed instructions, one to a line, because they use '|' inside immediates."""
    for group in groups:
        yield from (line.strip() for line in COMPRESSED.get(group, "").splitlines() if line.strip())


def instruction_length(word: int) -> int:
    """Return 2 or 4, in bytes. Longer encodings are illegal here and count as 4, the part that goes to mtval."""
    return 4 if word & 3 == 3 else 2
