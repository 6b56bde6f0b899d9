-- The original database of an agent. Nothing here can be rebuilt, so nothing here is ever dropped by a reset.
-- Instants are milliseconds UTC; days are YYYY-MM-DD in the workspace's zone.
CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;

-- Who wrote which part of a note: contiguous character ranges that cover the file as we last saw it.
CREATE TABLE note_records (
    path        TEXT PRIMARY KEY,
    file_hash   TEXT NOT NULL,              -- sha256 of the whole content
    length      INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;
CREATE TABLE note_segments (
    path         TEXT NOT NULL REFERENCES note_records ON DELETE CASCADE,
    start_offset INTEGER NOT NULL,
    end_offset   INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
    session_kind TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
    session_id   TEXT,
    session_key  TEXT,
    supersedes_key TEXT,
    observed_at  INTEGER NOT NULL,
    PRIMARY KEY (path, start_offset)
) STRICT, WITHOUT ROWID;
-- Writes to notes that transcripts report (an agent's own edit tool). Joined to note lines by hash; least trusted wins.
CREATE TABLE reported_writes (
    path         TEXT NOT NULL,
    line_hash    TEXT NOT NULL,             -- sha256 of the whitespace-folded line, or of a part of one
    part_length  INTEGER NOT NULL DEFAULT 0,-- 0: a whole line; n: a part of n characters without blanks; -1: unreadable
    session_id   TEXT NOT NULL,
    origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
    session_kind TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
    recalled     INTEGER NOT NULL DEFAULT 0 CHECK (recalled IN (0, 1)), -- the turn had recalled this text first
    observed_at  INTEGER NOT NULL,
    PRIMARY KEY (path, line_hash, session_id)
) STRICT, WITHOUT ROWID;

-- One row for each transcript file we have met, with the proof of how far it was read.
CREATE TABLE transcripts (
    path            TEXT PRIMARY KEY,       -- sessions/<agent>/<file name>
    session_id      TEXT,
    session_key     TEXT,
    session_kind    TEXT NOT NULL,
    chat_type       TEXT NOT NULL,
    channel         TEXT,
    hook_source     TEXT,
    read_to         INTEGER NOT NULL DEFAULT 0,
    prefix_hash     TEXT NOT NULL DEFAULT '',
    messages        INTEGER NOT NULL DEFAULT 0,
    faults          TEXT NOT NULL DEFAULT '{}',
    excluded_reason TEXT,
    ingested_at     INTEGER NOT NULL
) STRICT;

-- What the runtime showed to a reply. Appended after the answer, drained by id.
CREATE TABLE recall_events (
    event_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    day          TEXT NOT NULL,
    query        TEXT NOT NULL,             -- redacted
    query_hash   TEXT NOT NULL,             -- first 12 hex of sha1(trimmed, lower-cased query)
    session_key  TEXT,
    session_kind TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
    lane         TEXT NOT NULL              -- search, trigger, recall
) STRICT;
CREATE TABLE recall_hits (
    event_id     INTEGER NOT NULL REFERENCES recall_events ON DELETE CASCADE,
    rank         INTEGER NOT NULL,
    path         TEXT NOT NULL,
    start_line   INTEGER NOT NULL,
    end_line     INTEGER NOT NULL,
    score        REAL NOT NULL,             -- 0..1, on the calibrated scale of the embedder in use
    text         TEXT NOT NULL,             -- what was shown, redacted, at most 800 characters
    origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
    PRIMARY KEY (event_id, rank)
) STRICT, WITHOUT ROWID;

-- A claim is one fact, whatever lane saw it first. claim_id = 12 hex of sha1(normalised text).
CREATE TABLE claims (
    claim_id      TEXT PRIMARY KEY,
    root_id       TEXT NOT NULL,            -- claim that stands for a group of near-duplicates; itself when alone
    text          TEXT NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('fact', 'directive')),
    project_key   TEXT,
    lineage_key   TEXT,                     -- what the claim is about: equal keys supersede by time
    key_is_given  INTEGER NOT NULL DEFAULT 0 CHECK (key_is_given IN (0, 1)), -- 1: the writer gave the key
    origin_class  TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
    session_kind  TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
    concept_tags  TEXT NOT NULL DEFAULT '', -- joined by '; '
    pattern       TEXT NOT NULL DEFAULT '', -- text with its values masked: many claims of one pattern are a routine
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    status        TEXT NOT NULL DEFAULT 'waiting'
                  CHECK (status IN ('waiting', 'promoted', 'superseded', 'refused', 'withdrawn')),
    reason        TEXT,
    promoted_at   INTEGER,
    entry_key     TEXT
) STRICT;
CREATE INDEX claims_by_root ON claims (root_id);
CREATE INDEX claims_by_lineage ON claims (lineage_key);
CREATE INDEX claims_by_pattern ON claims (pattern);

-- Every place where a claim was stated.
CREATE TABLE evidence (
    evidence_id  INTEGER PRIMARY KEY,
    claim_id     TEXT NOT NULL REFERENCES claims ON DELETE CASCADE,
    source       TEXT NOT NULL CHECK (source IN ('note', 'transcript')),
    path         TEXT NOT NULL,
    start_line   INTEGER NOT NULL,
    end_line     INTEGER NOT NULL,
    source_key   TEXT NOT NULL,             -- note: hash of the source lines; transcript: message hash
    day          TEXT NOT NULL,
    session_id   TEXT,
    message_id   TEXT,
    heading_path TEXT NOT NULL DEFAULT '',
    origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
    session_kind TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
    echo         INTEGER NOT NULL DEFAULT 0 CHECK (echo IN (0, 1)), -- recalled text that came back: never an observation
    live         INTEGER NOT NULL DEFAULT 1 CHECK (live IN (0, 1)), -- 0: the source no longer says so
    gone_at      INTEGER,                   -- when we saw that the source no longer says so
    batch        TEXT,                      -- of a backfill, for its rollback
    observed_at  INTEGER NOT NULL,
    UNIQUE (claim_id, path, source_key)
) STRICT;
CREATE INDEX evidence_by_path ON evidence (path);
CREATE INDEX evidence_by_batch ON evidence (batch) WHERE batch IS NOT NULL;
-- What of the index staging has read: a source with both hashes unchanged is not read again.
CREATE TABLE staged_sources (
    path            TEXT PRIMARY KEY,
    hash            TEXT NOT NULL,
    provenance_hash TEXT NOT NULL,
    batch           TEXT,                   -- of the backfill that read it
    staged_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Inverted index over claims: specific values and rare words, so that near-duplicates are found without comparing all.
CREATE TABLE claim_keys (
    key      TEXT NOT NULL,
    claim_id TEXT NOT NULL REFERENCES claims ON DELETE CASCADE,
    PRIMARY KEY (key, claim_id)
) STRICT, WITHOUT ROWID;

-- What counts, once. recall: one per (claim, query, day); observation: one per (claim, session or note day).
CREATE TABLE signals (
    signal_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    claim_id    TEXT NOT NULL REFERENCES claims ON DELETE CASCADE,
    kind        TEXT NOT NULL CHECK (kind IN ('recall', 'observation', 'grounded')),
    context     TEXT NOT NULL,              -- query hash, session:<id>, or day:<day>
    day         TEXT NOT NULL,
    score       REAL NOT NULL CHECK (score BETWEEN 0 AND 1),
    observed_at INTEGER NOT NULL,
    event_id    INTEGER,                    -- of a recall
    evidence_id INTEGER,                    -- of an observation
    batch       TEXT,                       -- of a backfill, for its rollback
    UNIQUE (claim_id, kind, context, day)
) STRICT;
CREATE INDEX signals_by_time ON signals (observed_at);

CREATE TABLE phase_signals (
    claim_id       TEXT PRIMARY KEY REFERENCES claims ON DELETE CASCADE,
    light_hits     INTEGER NOT NULL DEFAULT 0,
    rem_hits       INTEGER NOT NULL DEFAULT 0,
    last_light_at  INTEGER,
    last_rem_at    INTEGER,
    last_rem_considered_at INTEGER
) STRICT;

CREATE TABLE watermarks (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

-- One row a sweep; its accounting adds up (seen = taken + duplicate + refused + waiting).
CREATE TABLE sweeps (
    sweep_id    TEXT PRIMARY KEY,
    day         TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER,
    outcome     TEXT NOT NULL CHECK (outcome IN ('running', 'promoted', 'nothing_to_do', 'failed', 'dry_run', 'undone')),
    reason      TEXT,
    counts      TEXT NOT NULL DEFAULT '{}'
) STRICT;
-- What a sweep read, by source and verdict.
CREATE TABLE accounting (
    sweep_id TEXT NOT NULL,
    source   TEXT NOT NULL,                 -- path
    verdict  TEXT NOT NULL,                 -- taken, duplicate, waiting, or refused:<reason>
    lines    INTEGER NOT NULL,
    PRIMARY KEY (sweep_id, source, verdict)
) STRICT, WITHOUT ROWID;
-- How many statements a sweep saw in a source, counted where they were read: the verdicts above must add up to it.
CREATE TABLE accounting_seen (
    sweep_id TEXT NOT NULL,
    source   TEXT NOT NULL,
    lines    INTEGER NOT NULL,
    PRIMARY KEY (sweep_id, source)
) STRICT, WITHOUT ROWID;
-- One row per candidate and sweep: every component, threshold and verdict.
CREATE TABLE gate_scores (
    sweep_id     TEXT NOT NULL,
    claim_id     TEXT NOT NULL,
    signal_count INTEGER NOT NULL,
    recall_count INTEGER NOT NULL,
    unique_queries INTEGER NOT NULL,
    age_days     REAL NOT NULL,
    relevance    REAL NOT NULL,
    frequency    REAL NOT NULL,
    diversity    REAL NOT NULL,
    recency      REAL NOT NULL,
    consolidation REAL NOT NULL,
    conceptual   REAL NOT NULL,
    phase_boost  REAL NOT NULL,
    score        REAL NOT NULL,
    failed_gate  TEXT,                      -- NULL: passed
    detail       TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (sweep_id, claim_id)
) STRICT, WITHOUT ROWID;

-- Append-only history of the curated files.
CREATE TABLE ledger (
    ledger_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    sweep_id    TEXT NOT NULL,
    at          INTEGER NOT NULL,
    file        TEXT NOT NULL,
    operation   TEXT NOT NULL,              -- vocabulary.Operation
    entry_key   TEXT NOT NULL,              -- as in the promotion marker
    claim_id    TEXT,
    text        TEXT NOT NULL,              -- the entry line as written
    sources     TEXT NOT NULL DEFAULT '[]', -- JSON: [{path,start,end,day,session_id,message_id,evidence_id}]
    priors      TEXT NOT NULL DEFAULT '[]', -- JSON: entry lines replaced
    lineage_key TEXT,
    gate        TEXT NOT NULL DEFAULT '{}', -- JSON: components and thresholds at the time
    pre_image_id INTEGER
) STRICT;
CREATE INDEX ledger_by_entry ON ledger (entry_key);

CREATE TABLE pre_images (
    pre_image_id INTEGER PRIMARY KEY AUTOINCREMENT,
    file        TEXT NOT NULL,
    sweep_id    TEXT NOT NULL,
    at          INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    content     BLOB,                       -- NULL: the file did not exist
    after_hash  TEXT NOT NULL DEFAULT '',   -- sha256 of what the sweep wrote; '' when it removed the file
    after_content BLOB                      -- what the sweep wrote, for undo's three-way difference and for asof
) STRICT;
-- A planned replacement, written before the rename: the next run finishes it or rolls it back.
CREATE TABLE write_journal (
    journal_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    sweep_id    TEXT NOT NULL,
    file        TEXT NOT NULL,
    base_hash   TEXT,
    new_hash    TEXT NOT NULL,
    effects     TEXT NOT NULL,              -- JSON: rows to publish when the file holds new_hash
    at          INTEGER NOT NULL
) STRICT;

CREATE TABLE standing_intents (
    intent_key  INTEGER PRIMARY KEY,
    intent_id   TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    trigger_keywords TEXT NOT NULL,         -- JSON array
    trigger_embedding BLOB,
    channel_scope TEXT,                     -- JSON; NULL: anywhere
    sender_scope TEXT,                      -- JSON; NULL: anyone
    creator_sender TEXT NOT NULL CHECK (trim(creator_sender) <> ''),
    status      TEXT NOT NULL CHECK (status IN ('pending', 'armed', 'fired', 'done', 'cancelled', 'expired')),
    expires_at  INTEGER,
    max_fires   INTEGER NOT NULL DEFAULT 3 CHECK (max_fires > 0),
    fire_count  INTEGER NOT NULL DEFAULT 0 CHECK (fire_count >= 0),
    cooldown_seconds INTEGER NOT NULL DEFAULT 86400 CHECK (cooldown_seconds >= 0),
    last_fired_at INTEGER,
    created_at  INTEGER NOT NULL,
    source_session_id TEXT
) STRICT;
CREATE INDEX standing_intents_by_status ON standing_intents (status, expires_at, last_fired_at);
CREATE INDEX standing_intents_by_fire ON standing_intents (last_fired_at) WHERE last_fired_at IS NOT NULL;
-- Each keyword entry of a live intent is found by the forms of one of its words (intents.terms), the one by which the
-- fewest others are found: a message that triggers the entry holds one of these forms.
CREATE TABLE standing_intent_terms (
    form       TEXT NOT NULL,
    intent_key INTEGER NOT NULL REFERENCES standing_intents ON DELETE CASCADE,
    PRIMARY KEY (form, intent_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX standing_intent_terms_by_intent ON standing_intent_terms (intent_key);
-- A row from any writer asks for its forms; the next upkeep stores them.
CREATE TRIGGER standing_intents_arrived AFTER INSERT ON standing_intents BEGIN
    INSERT INTO watermarks (name, value) VALUES ('standing_intent_terms', '')
    ON CONFLICT (name) DO UPDATE SET value = '';
END;
CREATE TRIGGER standing_intents_retired AFTER UPDATE OF status ON standing_intents
WHEN new.status IN ('done', 'cancelled', 'expired') BEGIN
    DELETE FROM standing_intent_terms WHERE intent_key = new.intent_key;
END;

CREATE TABLE tombstones (
    session_id TEXT PRIMARY KEY,
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- One row per pre-compaction flush cycle of a session.
CREATE TABLE flushes (
    session_id       TEXT NOT NULL,
    compaction_count INTEGER NOT NULL,
    outcome          TEXT NOT NULL,         -- written, nothing, failed, skipped:<reason>
    at               INTEGER NOT NULL,
    PRIMARY KEY (session_id, compaction_count)
) STRICT, WITHOUT ROWID;
