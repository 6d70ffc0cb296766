"""One kernel alone: inputs made from its signature, and its adjoint against finite differences, element by element."""
