"""Modified condition/decision coverage (MC/DC) of source code: which conditions decided a result by themselves.

The text of the source says which decisions and conditions there are (`source_text.py`), the line table and the code
which branch is which condition (`matching.py`), and the order of the branches' outcomes in a history which values the
conditions had together (`condition_values.py`). Where code and text do not fit together, nothing is determined.
"""
