"""Models of Warp's own functions: allocations, launches, tapes, copies, modules and options, optimisers."""
