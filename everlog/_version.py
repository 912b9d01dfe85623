"""The version, where nothing else needs to be imported to know it."""

__version__ = "0.1.0"
