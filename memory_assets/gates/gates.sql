-- The gates in the order of vocabulary.Gate; the first failing one is the verdict (openclaw-algorithms 24.1, 24.3).
-- In:  features (score.sql) of the groups with $first <= group_id < $last,
--      candidates(group_id, claim_id, path, live, origin_class, session_kind, status, ...), settings
-- Out: tried, one row a group; first_failed is NULL for those that may be promoted if the limit leaves room.
-- Origin and kind come before every number, so what they exclude uses up no slot.
INSERT INTO tried BY NAME
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
WHERE c.group_id >= $first AND c.group_id < $last;
