"""Servers for agents of any make: the tools over MCP and over HTTP on loopback.

Belongs here: transports, the schemas of arguments, who a request comes from, the access token.
Does not belong here: what a tool does (``recall.tools``, ``recall.turn``, ``remember``, ``intents``), who may see what
(``recall.visibility``): each request is asked there again.
"""
