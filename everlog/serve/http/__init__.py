"""The service behind HTTP: start, connections, access, streams, files."""
