"""Embedders behind one protocol: local ones shipped in packages, remote ones over HTTP.

Belongs here: turning text into unit vectors, the identity of an embedder, its calibration.
Does not belong here: storing vectors (``index.vectors``), deciding what text is embedded (``index.embedding``).
Importing this package loads no model and no heavy module; each embedder loads its weights at first use.
"""
