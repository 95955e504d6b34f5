"""Control Transfer Records (Smctr, Ssctr): the registers of both versions, and the procedures that use them.

Ref: RISC-V Control Transfer Records 1.0, ratified 2024-11-22; draft 0.1.4, 2023-09-15
"""
