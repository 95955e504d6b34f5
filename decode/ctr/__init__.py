"""Control Transfer Records: from the records of a hart to its history.

Source: RISC-V Control Transfer Records 1.0, ratified 2024-11-22; draft 0.1.4, 2023-09-15.
"""
