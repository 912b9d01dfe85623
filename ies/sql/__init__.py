"""SQL generation: a flat system as tables and triggers of an ordinary database.

| module | holds |
|---|---|
| `system_script` | the front: `script`, `sql_text` |
| `dialects` | names, types, constants, exact arithmetic of each dialect |
| `symbolic_values`, `select`, `translate` | terms to SQL by symbolic evaluation |
| `keeping` | values that are computed once, sets of sets among them |
| `column_names`, `update_plan` | tables of a system; an update as queries of the old state |
| `sqlite`, `postgres`, `scripts` | a plan as statements of one dialect |
| `errors` | what a dialect cannot express |
| `witness` | transitive closure by one witness per pair, written by hand |
"""

from everlog.ies.sql.dialects import DIALECTS
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.script import Script
from everlog.ies.sql.system_script import NODE_TYPES, script, sql_text

__all__ = ["DIALECTS", "NODE_TYPES", "Script", "SqlError", "script", "sql_text"]
