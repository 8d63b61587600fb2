"""A page of a testbed that is up, and its numbers for Prometheus: `bluetree up --web`.

server    the process: HTTP on one side, a client of the controller on the other
metrics   the status as Prometheus metrics
page.html the page: no library, nothing from elsewhere
"""
