"""Facts as text: tables of lines, JSON, and what they are read through."""
