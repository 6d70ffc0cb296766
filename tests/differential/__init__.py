"""Random kernels: what the analysis says of their gradients, against what Warp computes.

``python -m tests.differential --kernels 2000 --seed 1`` generates kernels, lints a small program around each, measures
each adjoint against finite differences, prints the confusion matrix, and shrinks what disagrees, by kind.
"""
