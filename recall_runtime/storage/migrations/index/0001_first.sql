-- The derived database: everything here can be rebuilt from the files and the state database.
CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;

-- Identity of what is inside (embedder, dims, chunking version) and the revision readers check.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE sources (
    source_id   INTEGER PRIMARY KEY,
    path        TEXT NOT NULL UNIQUE,       -- workspace-relative; transcripts: sessions/<agent>/<file name>
    kind        TEXT NOT NULL,              -- paths.PathKind
    tier        TEXT NOT NULL,              -- vocabulary.Tier
    day         TEXT,                       -- date of a dated source
    hash        TEXT NOT NULL,              -- sha256 of the bytes that were read
    provenance_hash TEXT NOT NULL DEFAULT '', -- hash of the write records that classified it
    mtime_ns    INTEGER NOT NULL,
    size        INTEGER NOT NULL,
    read_to     INTEGER NOT NULL DEFAULT 0, -- bytes consumed of a growing file
    session_id  TEXT,
    session_key TEXT,
    session_kind TEXT,
    chat_type   TEXT,
    problems    TEXT NOT NULL DEFAULT '{}', -- JSON: counts by kind of fault
    skipped     TEXT                        -- reason why nothing of it is indexed
) STRICT;

CREATE TABLE entries (
    entry_id     INTEGER PRIMARY KEY,
    source_id    INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE,
    ordinal      INTEGER NOT NULL,          -- position in the source
    start_line   INTEGER NOT NULL,
    end_line     INTEGER NOT NULL,
    text         TEXT NOT NULL,             -- redacted, without annotation carriers
    text_hash    TEXT NOT NULL,
    heading_path TEXT NOT NULL DEFAULT '',  -- JSON array
    block        TEXT NOT NULL,             -- notes.blocks.BlockKind or 'message'
    origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
    session_kind TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
    observed_at  INTEGER NOT NULL,
    session_id   TEXT,
    supersedes_key TEXT,
    role         TEXT,                      -- of a message or a dumped turn: user or assistant
    message_id   TEXT,
    message_hash TEXT,
    importance   INTEGER CHECK (importance BETWEEN 1 AND 10),
    triggers     TEXT,                      -- phrases joined by '; '
    project_key  TEXT,                      -- keys joined by '; '
    status       TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded')),
    candidate    INTEGER NOT NULL DEFAULT 1 -- 0: refused as a source of statements by structure (see refusal)
                 CHECK (candidate IN (0, 1)),
    refusal      TEXT,
    recalled     INTEGER NOT NULL DEFAULT 0  -- 1: written in a turn that had recalled memory: an echo at most
                 CHECK (recalled IN (0, 1)),
    embedded     INTEGER NOT NULL DEFAULT 0 CHECK (embedded IN (0, 1, 2)) -- 2: vector refused
) STRICT;
CREATE INDEX entries_by_source ON entries (source_id, ordinal);
CREATE INDEX entries_to_embed ON entries (embedded) WHERE embedded = 0;
CREATE INDEX entries_by_session ON entries (session_id) WHERE block = 'message';
CREATE INDEX entries_with_triggers ON entries (importance DESC) WHERE triggers IS NOT NULL;

-- Own-content FTS over text that recall_runtime.text has segmented, folded and stemmed; rowid = entry_id.
CREATE VIRTUAL TABLE entries_fts USING fts5 (body, context, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co M* S* P*'");
-- How many entries hold a word.
CREATE VIRTUAL TABLE entries_vocab USING fts5vocab (entries_fts, row);
-- One row a document: a share of its score lifts its entries; rowid = source_id. The words are in entries_fts already.
CREATE VIRTUAL TABLE documents_fts USING fts5 (body, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co M* S* P*'");
-- File names, searched apart from the bodies; rowid = source_id.
CREATE VIRTUAL TABLE paths_fts USING fts5 (name, tokenize = "unicode61 remove_diacritics 2");

-- Vectors live in a vec0 table made by index.vectors once the embedder's dimensions are known.
CREATE TABLE embedding_cache (
    identity   TEXT NOT NULL,
    text_hash  TEXT NOT NULL,
    vector     BLOB NOT NULL,               -- little-endian float32
    used_at    INTEGER NOT NULL,
    PRIMARY KEY (identity, text_hash)
) STRICT, WITHOUT ROWID;
