"""The abstract machine that runs host code over symbolic arrays: values, memory, statements, calls, and models of
libraries and of Warp; ``interpreter.py`` starts it.
"""
