"""CoreSight components around RISC-V trace: funnels, replicators and Trace Memory Controllers (ETB, ETF, ETR), their
registers and the procedures that use them.
"""
