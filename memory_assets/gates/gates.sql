-- The gates in the order of vocabulary.Gate; the first failing one is the verdict (openclaw-algorithms 24.1, 24.3).
-- In:  features (score.sql), candidates(group_id, claim_id, path, live, origin_class, session_kind, status, ...), settings
-- Out: verdicts, one row a group. Origin and kind come before every number, so what they exclude uses up no slot.
CREATE OR REPLACE TEMP TABLE verdicts AS
WITH tried AS (
    SELECT
        f.*, c.claim_id, c.root_id, c.path,
        greatest(0.0, least(1.0, f.raw_score)) AS score,
        CASE
            WHEN NOT c.live OR c.status = 'withdrawn' THEN 'source'
            WHEN c.origin_class NOT IN ('owner', 'agent') THEN 'origin'
            WHEN c.session_kind <> 'interactive' THEN 'session_kind'
            WHEN c.status = 'refused' THEN 'contaminated'
            WHEN c.status = 'promoted' THEN 'already_promoted'
            WHEN c.status = 'superseded' THEN 'superseded'
            WHEN f.signal_count < greatest(1, s.min_recall_count) THEN 'min_recall_count'
            WHEN f.unique_queries < s.min_unique_queries THEN 'min_unique_queries'
            WHEN f.age_days > s.max_age_days THEN 'max_age_days'
            WHEN f.raw_score < s.min_score THEN 'min_score'
        END AS first_failed
    FROM features AS f
    JOIN candidates AS c USING (group_id)
    CROSS JOIN settings AS s
),
ranked AS (
    SELECT
        group_id,
        row_number() OVER (ORDER BY score DESC, recall_count DESC, path, claim_id) AS place
    FROM tried
    WHERE first_failed IS NULL
)
SELECT
    t.* EXCLUDE (first_failed),
    r.place,
    coalesce(t.first_failed, CASE WHEN r.place > s.promotion_limit THEN 'limit' END) AS failed_gate
FROM tried AS t
CROSS JOIN settings AS s
LEFT JOIN ranked AS r USING (group_id);
