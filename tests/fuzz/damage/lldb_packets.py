"""LLDB's packets, at random: those of its documentation, with numbers at the edges and threads that are not there.

Source: LLDB's "GDB Remote Protocol Extensions", and what LLDB 23 sends.
"""

from __future__ import annotations

import random

_SHAPES = (
    "qHostInfo", "qProcessInfo", "qProcessInfoPID:{n}", "qRegisterInfo{n}", "QThreadSuffixSupported",
    "QStartNoAckMode", "QListThreadsInStopReply", "qEnableErrorStrings", "QEnableErrorStrings",
    "qVAttachOrWaitSupported", "qC", "?",
    "qSupported:xmlRegisters=i386,arm,mips,arc;multiprocess+;fork-events+;vfork-events+", "vCont?",
    "qStructuredDataPlugins", "jThreadsInfo", 'jThreadExtendedInfo:{{"thread":{d}}}',
    'jGetLoadedDynamicLibrariesInfos:{{"fetch_all_solibs":true}}', 'jModulesInfo:[{{"file":"a","triple":"riscv64"}}]',
    "jSignalsInfo", "jLLDBTraceSupported", "qThreadStopInfo{t}", "qfThreadInfo", "qsThreadInfo", "T{t}", "Hg{t}",
    "Hc{t}", "Hc0{t}", "qOffsets", "qShlibInfoAddr", "qSymbol::", "qMemoryRegionInfo:{n}", "qMemoryRegionInfo:",
    "x{n},{n}", "x0,0", "m{n},{n}", "m1000,200", "x1000,200", "p{n}", "p{n};thread:{t};", "g;thread:{t};", "g",
    "P{n}={n};thread:{t};", "QSaveRegisterState;thread:{t};", "QRestoreRegisterState:{n};thread:{t};", "Z{k},{n},{n}",
    "z{k},{n},{n}", "Z0,1004,2", "z0,1004,2", "Z2,2000,4", "qXfer:features:read:target.xml:{n},{n}",
    "qXfer:libraries-svr4:read::{n},{n}", "qXfer:memory-map:read::0,{n}", "qXfer:siginfo:read::0,{n}",
    "qXfer:auxv:read::{n},{n}", "vCont;c", "vCont;s:{t}", "vCont;s:{t};c", "vCont;c:{t}", "vCont;r{n},{n}:{t}",
    "vCont;C{n}:{t};s:{t}", "bs", "bc", "s", "c", "qEcho:{d}", "qRcmd,{h}", "qModuleInfo:{h};{h}",
    "QPassSignals:{n};{n}", "QEnvironment:A={n}", "qGetWorkingDir", "vFile:open:{h},{n},{n}",
    "vFile:pread:{n},{n},{n}", "vFile:size:{h}", "_M{n},rx", "_m{n}", "qSpeedTest:response_size:{n};data:", "D;{t}",
    "qWatchpointSupportInfo:", "\x03",
)  # fmt: skip
_NUMBERS = (0, 1, 2, 4, 0x20, 0x200, 0xFFF, 0x1000, 0x1004, 0x2000, 0x4000, 1 << 31, 1 << 32, (1 << 64) - 1, 1 << 64)
_THREADS = ("0", "1", "2", "-1", "p1.1", "p-1.-1", "p0.0", "01", "1001", "ffffffffffffffff", "", "g")
_BUTTONS = (("bs", "bs"), ("bc", "bs"), ("bs",), ("bc", "bc"))


def packets(rng: random.Random, count: int) -> list[str]:
    """So many packets of LLDB, and now and then those of a button of CodeLLDB, which belong together."""
    made: list[str] = []
    while len(made) < count:
        if rng.random() < 0.15:
            made += [f"Hc{rng.choice(_THREADS)}", *rng.choice(_BUTTONS), "vCont;s:1"]
        else:
            made.append(_packet(rng))
    return made


def _packet(rng: random.Random) -> str:
    shape = rng.choice(_SHAPES)
    while "{n}" in shape:
        shape = shape.replace("{n}", f"{_number(rng):x}", 1)
    text = bytes(rng.randrange(256) for _ in range(rng.randrange(12))).hex()
    return shape.format(d=_number(rng), t=rng.choice(_THREADS), k=rng.randrange(6), h=text)


def _number(rng: random.Random) -> int:
    return rng.choice(_NUMBERS) if rng.random() < 0.8 else rng.getrandbits(rng.randrange(1, 70))
