-- Components of every candidate group (openclaw-algorithms 24.2).
-- In:  candidates(group_id, tags, light_hits, rem_hits, last_light_at, last_rem_at, ...), one row a group
--      signals(group_id, recall, grounded, context, day, score, observed_at);
--      context is a number that stands for one question, session or note day; day counts days since the epoch
--      settings: one row (now_ms, half_life_days, w_*, ...)
-- Out: features, one row a group with $first <= group_id < $last; run once a slice, so that the hash tables and what is
--      handed to the gates stay small.
-- A group is a claim with its near-duplicates, so the same question that showed two wordings on one day counts once.
CREATE OR REPLACE TEMP TABLE features AS
WITH once AS (
    SELECT
        group_id, recall, context, day,
        max(score) AS score, max(observed_at) AS observed_at, bool_and(grounded) AS grounded
    FROM signals
    WHERE group_id >= $first AND group_id < $last
    GROUP BY group_id, recall, context, day
),
totals AS (
    SELECT
        group_id,
        count(*) AS signal_count,
        count(*) FILTER (recall) AS recall_count,
        count(*) FILTER (grounded) AS grounded_count,
        sum(score) AS total_score,
        max(observed_at) AS last_signal_at,
        min(day) AS first_day,
        max(day) AS last_day
    FROM once
    GROUP BY group_id
),
contexts AS (
    SELECT group_id, count(*) AS unique_queries
    FROM (SELECT DISTINCT group_id, context FROM once)
    GROUP BY group_id
),
days AS (
    SELECT group_id, count(*) AS day_count
    FROM (SELECT DISTINCT group_id, day FROM once)
    GROUP BY group_id
),
counted AS (
    SELECT
        c.group_id,
        coalesce(t.signal_count, 0) AS signal_count,
        coalesce(t.recall_count, 0) AS recall_count,
        coalesce(t.grounded_count, 0) AS grounded_count,
        coalesce(t.total_score, 0.0) AS total_score,
        coalesce(q.unique_queries, 0) AS unique_queries,
        coalesce(d.day_count, 0) AS day_count,
        coalesce(t.last_day - t.first_day, 0) AS span_days,
        coalesce(age_of(t.last_signal_at, s.now_ms), 0.0) AS age_days,
        c.tags, c.light_hits, c.rem_hits,
        age_of(c.last_light_at, s.now_ms) AS light_age_days,
        age_of(c.last_rem_at, s.now_ms) AS rem_age_days
    FROM candidates AS c
    CROSS JOIN settings AS s
    LEFT JOIN totals AS t USING (group_id)
    LEFT JOIN contexts AS q USING (group_id)
    LEFT JOIN days AS d USING (group_id)
    WHERE c.group_id >= $first AND c.group_id < $last
),
components AS (
    SELECT
        k.group_id, k.signal_count, k.recall_count, k.grounded_count, k.unique_queries,
        k.day_count, k.span_days, k.age_days,
        greatest(0.0, least(1.0, k.total_score / greatest(1, k.signal_count))) AS relevance,
        frequency_of(k.signal_count) AS frequency,
        diversity_of(k.unique_queries) AS diversity,
        recency_of(k.age_days, s.half_life_days) AS recency,
        consolidation_of(k.day_count, k.span_days, k.grounded_count) AS consolidation,
        conceptual_of(k.tags) AS conceptual,
        phase_boost_of(k.light_hits, k.light_age_days, k.rem_hits, k.rem_age_days) AS phase_boost
    FROM counted AS k
    CROSS JOIN settings AS s
)
SELECT
    p.*,
    weighted_sum(
        p.relevance, p.frequency, p.diversity, p.recency, p.consolidation, p.conceptual, p.phase_boost,
        w_relevance := s.w_relevance, w_frequency := s.w_frequency, w_diversity := s.w_diversity,
        w_recency := s.w_recency, w_consolidation := s.w_consolidation, w_conceptual := s.w_conceptual
    ) AS raw_score
FROM components AS p
CROSS JOIN settings AS s;
