"""SQLite files, file replacement and locks: everything that touches a disk in a way that must survive a crash.

Belongs here: connections, migrations, atomic replacement of files, the locks between our own processes.
Does not belong here: what the tables mean to search, signals or curation (their rooms own the queries).
"""
