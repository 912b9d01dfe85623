"""`everlog mcp`: tools for agents, over a database of their own or a running service.

An agent asks what a client of the service asks, so a tool is a request of the service: an own
database answers it in process, a service over HTTP.  What is true of one is true of the other.

| module | holds |
|---|---|
| `tools` | the tools with their descriptions, for the official `mcp` package |
| `answering` | what a tool needs: answers to requests, and changes to wait for |
| `own_database` | answers of a database in this process |
| `remote` | answers of a service |
"""
