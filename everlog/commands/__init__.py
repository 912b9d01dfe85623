"""The commands of `everlog`, one module for each."""
