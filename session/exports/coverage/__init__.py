"""Exports of coverage, for the programs that show and collect it. What may have run in a gap is left out: it is neither
covered nor uncovered.
"""
