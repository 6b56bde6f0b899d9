-- An analyst's question on the published snapshot: how would past scores and verdicts look with other weights or
-- another threshold? Reads the view gate_scores, writes nothing. Verdicts of gates that are no matter of weights stay.
--   SELECT * FROM what_if(w_recency := 0.05, w_frequency := 0.34, least_score := 0.7) WHERE verdict_then <> verdict_now
CREATE OR REPLACE MACRO what_if(
    w_relevance := 0.30, w_frequency := 0.24, w_diversity := 0.15,
    w_recency := 0.15, w_consolidation := 0.10, w_conceptual := 0.06, least_score := 0.75
) AS TABLE
    WITH rescored AS (
        SELECT
            sweep_id, claim_id, score AS score_then, coalesce(failed_gate, 'passed') AS verdict_then,
            weighted_sum(
                relevance, frequency, diversity, recency, consolidation, conceptual, phase_boost,
                w_relevance := w_relevance, w_frequency := w_frequency, w_diversity := w_diversity,
                w_recency := w_recency, w_consolidation := w_consolidation, w_conceptual := w_conceptual
            ) AS raw_now
        FROM gate_scores
    )
    SELECT
        sweep_id, claim_id, score_then, greatest(0.0, least(1.0, raw_now)) AS score_now, verdict_then,
        CASE
            WHEN verdict_then NOT IN ('passed', 'limit', 'min_score', 'rehydration', 'budget') THEN verdict_then
            WHEN raw_now < least_score THEN 'min_score'
            WHEN verdict_then = 'min_score' THEN 'passed'
            ELSE verdict_then
        END AS verdict_now
    FROM rescored;
