"""The adjoint-need analysis of kernels and functions, and the table of Warp's builtins."""
