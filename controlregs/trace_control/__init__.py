"""The RISC-V Trace Control Interface 1.0: the registers of its components, and the procedures that drive them.

Ref: RISC-V Trace Control Interface Specification, version 1.0, ratified 2024-11-21
"""
