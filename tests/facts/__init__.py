"""The measurements on which the rules about kernels stand, and what compares the analysis with them."""
