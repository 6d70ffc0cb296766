"""Finite differences of a replayed objective: directions, ladders of steps, kinks, error estimates."""
