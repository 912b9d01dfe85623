"""Facts with types of their own: columns in files, and tables of databases."""
