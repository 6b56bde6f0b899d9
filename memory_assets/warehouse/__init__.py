"""Analytics: the private DuckDB of the sweep, the published snapshot, read-only queries.

Belongs here: opening DuckDB, handing rows over from the state database, publishing, querying.
Does not belong here: scoring (``memory_assets.gates``), the truth (the state database and the files).
"""
