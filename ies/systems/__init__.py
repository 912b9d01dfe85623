"""Systems in the calculus, one `.nrc` file each: see `everlog ies list`."""
