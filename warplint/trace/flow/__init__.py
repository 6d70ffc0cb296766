"""What follows from the order of a trace's events, one question a room; ``dataflow.py`` asks them for the rules."""
