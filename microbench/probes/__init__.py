"""One file per kind of measurement; each has a sweep that a plan lists."""
