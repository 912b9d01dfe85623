"""Streams of changes: follow tables elsewhere, and let tables elsewhere follow.

    model            changes of rows, transactions, the interfaces of sources and sinks
    naming           the relation and the key of each table
    debezium         change events as lines of JSON, in both directions
    grouping         events to transactions
    lines, sockets   lines from files, pipes and sockets
    jsonsource       Debezium's lines as a source;  jsonsink  as a sink
    resolve          changes of rows to updates of facts
    pipeline         the loop: transactions in, steps, changes out
    pgoutput         PostgreSQL's binary messages of logical replication
    postgres_tables  tables of PostgreSQL: columns, keys, and rows of one snapshot
    replication      changes from a replication slot;  triggers  from triggers, where there is none
    postgres_source  a PostgreSQL database as a source;  postgres_sink  as a sink
    addresses        the names of sources and sinks; `follow`

`follow(database, sources, sinks)` runs everything.
"""

from everlog.streams.addresses import follow

__all__ = ["follow"]
