-- The last gate: of all groups that passed the others, the best ones up to the limit (openclaw-algorithms 24.3).
-- In:  tried (gates.sql, all slices), settings
-- Out: verdicts, one row a group: place among those that passed, and the first gate that failed. Only those that
--      passed are sorted and looked up again, so the cost of the rest does not grow with them.
CREATE OR REPLACE TEMP TABLE places AS
SELECT
    group_id,
    row_number() OVER (ORDER BY score DESC, recall_count DESC, path, claim_id) AS place
FROM tried
WHERE first_failed IS NULL;

CREATE OR REPLACE TEMP VIEW verdicts AS
SELECT
    t.* EXCLUDE (first_failed),
    p.place,
    coalesce(t.first_failed, CASE WHEN p.place > s.promotion_limit THEN 'limit' END) AS failed_gate
FROM tried AS t
CROSS JOIN settings AS s
LEFT JOIN places AS p USING (group_id);
