"""Measuring the two cosine levels of an embedder.

Belongs here: the probe sentences and the measurement.
Does not belong here: the stored constants of the local embedders (each stands beside its embedder).
"""

from recall_runtime.index.embedders.protocol import Calibration, Embedder

PARAPHRASES = (
    ("The flight to Lisbon leaves at seven in the morning.", "Our plane for Lisbon departs at 7 am."),
    ("She prefers tea without sugar.", "She likes her tea unsweetened."),
    ("Restart the database before you run the tests.", "The database must be restarted prior to running the tests."),
    ("The dentist moved the appointment to Friday.", "The dental appointment was rescheduled for Friday."),
    ("Keep the gateway on the loopback interface.", "The gateway should only listen on loopback."),
    ("The cellar floods when it rains heavily.", "Heavy rain puts the basement under water."),
    ("He finished the novel in two days.", "It took him two days to read the novel."),
    ("Invoices are paid on the last day of the month.", "We pay bills at the end of each month."),
)


def measure(embedder: Embedder) -> Calibration:
    """Return the mean cosine of the paraphrase pairs and of all pairs about different things.

    Raises:
        EmbedderError: the embedder failed.
    """
    left = embedder.embed_documents([first for first, _ in PARAPHRASES])
    right = embedder.embed_documents([second for _, second in PARAPHRASES])
    cosines = left @ right.T
    size = len(PARAPHRASES)
    same = float(cosines.trace()) / size
    different = (float(cosines.sum()) - same * size) / (size * (size - 1))
    return Calibration(unrelated=round(different, 3), paraphrase=round(same, 3))
