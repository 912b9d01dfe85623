"""A program as a service: HTTP and JSON, events for who follows changes, a console for people.

====================  ======================================================================
`serve.server`        a service from its start to its end: socket, threads, signals
`serve.desk`          the main thread, where the database lives: one job after the other
`serve.service`       the database as jobs see it: steps, states of the past, who listens
`serve.reading`       what can be asked; `serve.writing` what can be changed
`serve.events`        who follows changes, each with a bounded queue; `serve.streaming` sends
`serve.routes`        the one table of routes; `serve.openapi` describes it
`serve.schemas`       shapes of bodies and answers; `serve.shapes` compares values with shapes
`serve.wire`          facts as JSON and back; `serve.errors` what is told when something is wrong
`serve.app`           requests to jobs, answers to responses; `serve.gate` who may ask
`console/`            the page at `/`: HTML, CSS and JavaScript as they are, nothing to build
====================  ======================================================================
"""
