"""Fixes: what rules ask for becomes text edits, edits are merged and applied to files.

``edits`` makes them (the only user of libcst, which it imports when there is something to make), ``text`` applies them
to one text, ``plan`` merges those of many findings, ``files`` writes.
"""
