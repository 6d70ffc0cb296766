"""The trace: its events, the interpreter that makes them from source, and what follows from their order."""
