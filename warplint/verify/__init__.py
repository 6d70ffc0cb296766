"""The run-time engine: recording, replay, finite differences, repairs, verdicts."""
