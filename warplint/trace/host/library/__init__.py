"""Models of Python's library and of numpy: what a program's host code needs of them to be followed."""
