"""The jobs of the service, one after another, and the results that they keep."""
