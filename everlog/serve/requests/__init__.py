"""What can be asked of the service: one table of routes, schemas, and how a request runs."""
