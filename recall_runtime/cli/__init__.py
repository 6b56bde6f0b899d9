"""The command line: thin, one module a group of commands.

Belongs here: arguments, opening the agent, calling one room, printing what it said.
Does not belong here: any decision about memory (the rooms make them), heavy imports at module level.
"""
