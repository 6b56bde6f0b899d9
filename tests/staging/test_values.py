"""Which values tell something by themselves."""

import pytest

from memory_assets.staging.values import telling_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("The db listens on port 5432.", ["5432"]),
        ("Backups land in s3://keep-41.", ["s3://keep-41"]),
        ("Pass --shards=4 or it runs out of memory.", ["--shards=4"]),
        ("The panel is at 127.0.0.1:8080.", ["127.0.0.1:8080"]),
        ("Weather check: 22 degrees.", []),
        ("694 passed, 40 skipped.", []),
        ("Heartbeat check at 12:10.", []),
        ("Quiet from 22:00-07:00.", []),
        ("Since 2026-03-01 it is so.", []),
        ("It was so in 2025.", []),
        ("The harbour was busy.", []),
    ],
)
def test_counts_dates_and_clocks_tell_nothing(text, values):
    assert telling_values(text) == values
