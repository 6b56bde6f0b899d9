-- Formulas of the deep phase as DuckDB macros; the sweep and the analyst use the same ones.
-- Source of each formula: openclaw-algorithms 23 (phase boost) and 24.2 (components, weights).

-- Age in days of an instant in milliseconds, never negative; no instant has no age (greatest alone would skip NULL)
CREATE OR REPLACE MACRO age_of(at_ms, now_ms) AS
    CASE WHEN at_ms IS NOT NULL THEN greatest(0, now_ms - at_ms) / 86400000.0 END;

-- 24.2 frequency: min(1, ln(1 + signals) / ln 11)
CREATE OR REPLACE MACRO frequency_of(signals) AS least(1.0, ln(1 + signals) / ln(11));

-- 24.2 diversity: min(1, unique queries / 5)
CREATE OR REPLACE MACRO diversity_of(unique_queries) AS least(1.0, unique_queries / 5.0);

-- 24.2 recency: exp(-ln 2 * age / half-life), age in days since the last signal
CREATE OR REPLACE MACRO recency_of(age_days, half_life_days) AS exp(-ln(2) * age_days / half_life_days);

-- 24.2 consolidation: the larger of the spread over days and the share of three grounded signals
CREATE OR REPLACE MACRO spread_of(days, span_days) AS
    CASE
        WHEN days <= 0 THEN 0.0
        WHEN days = 1 THEN 0.2
        ELSE 0.55 * least(1.0, ln(days) / ln(5)) + 0.45 * least(1.0, span_days / 7.0)
    END;
CREATE OR REPLACE MACRO consolidation_of(days, span_days, grounded) AS
    greatest(spread_of(days, span_days), least(1.0, grounded / 3.0));

-- 24.2 conceptual richness: min(1, tags / 6)
CREATE OR REPLACE MACRO conceptual_of(tags) AS least(1.0, tags / 6.0);

-- 23 phase boost: 0.06 for light hits and 0.09 for REM hits, each with its own age and a half-life of 14 days
CREATE OR REPLACE MACRO hit_strength_of(hits) AS least(1.0, ln(1 + hits) / ln(7));
CREATE OR REPLACE MACRO hit_fade_of(age_days) AS coalesce(exp(-ln(2) * age_days / 14.0), 0.0);
CREATE OR REPLACE MACRO phase_boost_of(light_hits, light_age_days, rem_hits, rem_age_days) AS
    greatest(0.0, least(1.0,
        0.06 * hit_strength_of(light_hits) * hit_fade_of(light_age_days)
        + 0.09 * hit_strength_of(rem_hits) * hit_fade_of(rem_age_days)));

-- 24.2 weighted sum. Give other weights by name to ask "what if":
--   SELECT claim_id, weighted_sum(relevance, frequency, diversity, recency, consolidation, conceptual, phase_boost,
--                                 w_recency := 0.30, w_relevance := 0.15) FROM gate_scores
CREATE OR REPLACE MACRO weighted_sum(
    relevance, frequency, diversity, recency, consolidation, conceptual, phase_boost,
    w_relevance := 0.30, w_frequency := 0.24, w_diversity := 0.15,
    w_recency := 0.15, w_consolidation := 0.10, w_conceptual := 0.06
) AS
    w_relevance * relevance + w_frequency * frequency + w_diversity * diversity
    + w_recency * recency + w_consolidation * consolidation + w_conceptual * conceptual + phase_boost;
