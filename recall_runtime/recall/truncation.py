"""Fitting a file into a prompt budget: head and tail with a marker between them.

Belongs here: the truncation rule of openclaw-algorithms 30, in characters.
Does not belong here: which files are injected, and dropping whole entries (``recall.bootstrap``).
"""

HEAD_SHARE = 0.75
LEAST_TEXT = 16
_ROUNDS = 3  # the counts inside the marker change its length, so the split is computed again


def truncate(text: str, limit: int, name: str) -> str:
    """Return ``text`` without trailing blanks, cut to at most ``limit`` characters.

    A longer text keeps its head (75 %) and tail (25 %) as verbatim slices with a marker between them that names the
    file and says how much was kept; a compact marker is used where the full one would leave fewer than 16 characters.
    """
    text = text.rstrip()
    if len(text) <= limit:
        return text
    head, tail = _split(text, limit, name, compact=False)
    compact = head + tail < LEAST_TEXT
    if compact:
        head, tail = _split(text, limit, name, compact=True)
    marker = _marker(name, head, tail, len(text), compact=compact)
    if head + tail == 0:
        return marker.strip("\n")[:limit]
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]}\n{marker}\n{end}"


def _split(text: str, limit: int, name: str, *, compact: bool) -> tuple[int, int]:
    head = tail = 0
    for _ in range(_ROUNDS):
        room = max(0, limit - len(_marker(name, head, tail, len(text), compact=compact)) - 2)
        head, tail = int(room * HEAD_SHARE), int(room * (1 - HEAD_SHARE))
    over = head + tail + len(_marker(name, head, tail, len(text), compact=compact)) + 2 - limit
    if over > 0:
        from_tail = min(tail, over)
        tail -= from_tail
        head = max(0, head - (over - from_tail))
    return head, tail


def _marker(name: str, head: int, tail: int, total: int, *, compact: bool) -> str:
    if compact:
        return f"[…kept {head}+{tail} of {total}]"
    first = f"[This copy is cut; read {name} for the complete text]"
    return f"\n{first}\n[{name}: keeps {head}+{tail} of {total} characters]\n"
