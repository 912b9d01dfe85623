"""The commands of `everlog`, one module each."""
