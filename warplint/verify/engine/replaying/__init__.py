"""Runs a recorded execution again: forward from any state, and its adjoints as a tape would or across tapes."""
