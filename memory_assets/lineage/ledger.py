"""Reading the ledger of one agent into the graph, whatever shape the database is in.

Belongs here: the query, and turning a missing, locked or damaged database into a reason.
Does not belong here: what the rows mean (``lineage.graph``).
"""

from pathlib import Path

import apsw

from memory_assets.lineage.graph import DEFAULT_CAP, LineageGraph, build_graph, decode_row
from recall_runtime.errors import DreamlineError
from recall_runtime.storage.schema import read_state

_ROWS = """
    SELECT l.ledger_id, l.sweep_id, l.at, l.file, l.operation, l.entry_key, l.claim_id, l.text, l.sources, l.priors,
           l.gate, c.claim_id IS NULL OR c.origin_class IN ('owner', 'agent')
      FROM ledger l LEFT JOIN claims c USING (claim_id)
     ORDER BY l.ledger_id"""


def graph_from_connection(state: apsw.Connection, *, cap: int = DEFAULT_CAP) -> LineageGraph:
    """Return the graph of the ledger in the open ``state`` database."""
    decoded = [decode_row(row) for row in state.execute(_ROWS)]
    return build_graph([row for row, _ in decoded], cap=cap, damaged=sum(not ok for _, ok in decoded))


def read_graph(state_db: Path, *, cap: int = DEFAULT_CAP) -> LineageGraph:
    """Return the graph of the ledger in ``state_db``. Never raises: what hinders it becomes ``problem``."""
    if not state_db.exists():
        return LineageGraph(problem="Nothing was dreamed yet: there is no state database. Run `dreamline dream`.")
    try:
        state = read_state(state_db)
    except DreamlineError as error:
        return LineageGraph(problem=str(error))
    try:
        return graph_from_connection(state, cap=cap)
    except apsw.Error as error:
        return LineageGraph(problem=f"The ledger in {state_db.name} can't be read ({error}). Run `dreamline doctor`.")
    finally:
        state.close()
