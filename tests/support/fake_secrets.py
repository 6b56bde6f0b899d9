"""Texts in the shape of secrets that are none: said in the text itself, and put together from parts.

Belongs here: what a test needs to see a secret masked. Does not belong here: anything that could open a door.
"""

KEY_BEGIN = "-----BEGIN " + "RSA PRIVATE KEY-----"
KEY_END = "-----END " + "RSA PRIVATE KEY-----"
KEY_LINES = ("NOTAKEYEXAMPLE", "FAKEFAKEFAKE")  # of letters alone, as the body of a key is


def fake_key() -> str:
    """Return a block in the shape of a private key."""
    return "\n".join((KEY_BEGIN, *KEY_LINES, KEY_END))
