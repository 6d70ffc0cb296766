"""The questions put to each gradient: is it right, which repair makes it right, who destroyed what it needed."""
