"""Proves findings by running the user's program: plans runs, reads what the child answered, and gives verdicts.

The parent's side is here and never imports user code, numpy or warp; ``engine`` is the child's side. Between them go
the records of ``records.py``, as JSON lines.
"""
