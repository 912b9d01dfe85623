"""A program as a service: HTTP and JSON, events for changes, a workbench in the browser.

server       starts and stops a service: socket, threads, signals
job_queue    the main thread, which owns the database, runs one job after another
service      the database as jobs see it: steps, past states, subscribers
reading      the jobs that read;  writing  the jobs that write
events       subscribers of changes, each with a bounded queue;  streaming  sends them
snapshots    copies of a state for new subscribers
routes       the table of routes;  openapi  describes it
schemas      JSON Schemas of bodies and answers;  json_schema  validates values
wire         facts as JSON and back;  errors  converts exceptions to error answers
ordering     sorts rows in pieces;  memory  frees memory between jobs
app          from requests to jobs, from answers to responses;  access  who may send requests
connections  limits on idle connections;  untrusted  limits on texts from clients
static       the files of `console/`, the page at `/`: plain HTML, CSS and JavaScript
"""
