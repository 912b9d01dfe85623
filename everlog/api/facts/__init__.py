"""Facts from Python and back: rows, dicts, dataclasses and tables."""
