"""Watches the user's program and writes its execution down, without changing what it computes."""
