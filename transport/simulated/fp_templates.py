"""What the F and D instructions do, as Python source: one template for both widths.

{fa} {fb} {fc} are the source floating-point registers as bit patterns of the format, unboxed; {fmt} the format, {sign}
its sign bit, {rm} the rounding mode; {fs} (single) and {fd} (double) the first operand whatever the mnemonic's last
letter says; {a} {wa} {ua} {sa} the integer register. Templates leave the result in `v` and the flags they raise in `e`;
which register file `v` goes to, and the checks of mstatus.FS and of the rounding mode, are added in `source`.

Source: The RISC-V Instruction Set Manual, Volume I, 20240411, chapters 21 "F" and 22 "D"; `softfloat` does the sums.
"""

# The mnemonic without its last ".s" or ".d"; the rows that end in {rm} depend on the rounding mode.
ARITHMETIC = {
    "fadd": "v,e=sf.add({fa},{fb},{fmt},{rm})",
    "fsub": "v,e=sf.sub({fa},{fb},{fmt},{rm})",
    "fmul": "v,e=sf.mul({fa},{fb},{fmt},{rm})",
    "fdiv": "v,e=sf.div({fa},{fb},{fmt},{rm})",
    "fsqrt": "v,e=sf.sqrt({fa},{fmt},{rm})",
    "fmadd": "v,e=sf.fma({fa},{fb},{fc},{fmt},{rm})",
    "fmsub": "v,e=sf.fma({fa},{fb},{fc}^{sign},{fmt},{rm})",
    "fnmsub": "v,e=sf.fma({fa}^{sign},{fb},{fc},{fmt},{rm})",
    "fnmadd": "v,e=sf.fma({fa}^{sign},{fb},{fc}^{sign},{fmt},{rm})",
    "fmin": "v,e=sf.minimum({fa},{fb},{fmt})",
    "fmax": "v,e=sf.maximum({fa},{fb},{fmt})",
    "fsgnj": "v={fa}&~{sign}|{fb}&{sign}",
    "fsgnjn": "v={fa}&~{sign}|~{fb}&{sign}",
    "fsgnjx": "v={fa}^{fb}&{sign}",
}

# Results that go to an integer register; those of 32 bits are sign-extended.
TO_INTEGER = {
    "feq": "v,e=sf.eq({fa},{fb},{fmt})",
    "flt": "v,e=sf.lt({fa},{fb},{fmt})",
    "fle": "v,e=sf.le({fa},{fb},{fmt})",
    "fclass": "v=sf.classify({fa},{fmt})",
    "fcvt.w": "v,e=sf.to_int({fa},{fmt},32,True,{rm})",
    "fcvt.wu": "v,e=sf.to_int({fa},{fmt},32,False,{rm})",
    "fcvt.l": "v,e=sf.to_int({fa},{fmt},64,True,{rm})",
    "fcvt.lu": "v,e=sf.to_int({fa},{fmt},64,False,{rm})",
    "fmv.x.w": "v={f1}&0xffffffff",
    "fmv.x.d": "v={f1}",
}
WORD_RESULTS = frozenset(("fcvt.w", "fcvt.wu", "fmv.x.w"))

# Full mnemonics: results in single and in double precision.
TO_SINGLE = {
    "fcvt.s.w": "v,e=sf.from_int({wa},sf.F32,{rm})",
    "fcvt.s.wu": "v,e=sf.from_int({ua},sf.F32,{rm})",
    "fcvt.s.l": "v,e=sf.from_int({sa},sf.F32,{rm})",
    "fcvt.s.lu": "v,e=sf.from_int({a},sf.F32,{rm})",
    "fcvt.s.d": "v,e=sf.convert({fd},sf.F64,sf.F32,{rm})",
    "fmv.w.x": "v={ua}",
}
TO_DOUBLE = {
    "fcvt.d.w": "v,e=sf.from_int({wa},sf.F64,{rm})",
    "fcvt.d.wu": "v,e=sf.from_int({ua},sf.F64,{rm})",
    "fcvt.d.l": "v,e=sf.from_int({sa},sf.F64,{rm})",
    "fcvt.d.lu": "v,e=sf.from_int({a},sf.F64,{rm})",
    "fcvt.d.s": "v,e=sf.convert({fs},sf.F32,sf.F64,{rm})",
    "fmv.d.x": "v={a}",
}

LOADS = {"flw": 4, "fld": 8}
STORES = {"fsw": 4, "fsd": 8}
