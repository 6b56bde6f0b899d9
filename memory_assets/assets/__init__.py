"""Assets of the pipeline, one module a group. Each module gives ``assets_of(agent_id, days)``.

Belongs here: bodies that read, call a step of ``memory_assets.sweep``, and report numbers.
Does not belong here: the work itself (rings 1 and 2), checks, jobs.

No IO managers: the data lies in files and databases we own, and hash-checked writes must not hide behind one. Events
carry counts and identifiers only, because the event log can't forget.
"""
