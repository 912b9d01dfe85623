"""Streams of changes: rows that come and go elsewhere, and derived relations that follow, elsewhere
too.

    model            changes of rows, transactions, what a source and a sink are
    naming           which relation a table feeds, and its key
    debezium         change events as lines of JSON, both ways
    grouping         events to transactions
    lines, sockets   lines from files, pipes and sockets
    jsonsource       Debezium's lines in;  jsonsink  out
    resolve          changes of rows to updates of facts
    following        the loop: transactions in, steps, changes out
    pgoutput         PostgreSQL's binary messages of logical replication
    tables           tables of PostgreSQL: their columns and keys, and their rows as of one instant
    replication      changes from a replication slot;  triggers  from triggers, where there is none
    postgres_source  a database of PostgreSQL as a source;  postgres_sink  as a sink
    addresses        what all of them are called; `follow`

`follow(database, sources, sinks)` does it all.
"""

from everlog.streams.addresses import follow

__all__ = ["follow"]
