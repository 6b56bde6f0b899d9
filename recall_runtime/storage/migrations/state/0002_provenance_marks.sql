-- What classifies a note, as one small row a note and a session: whether a note must be classified again is answered
-- without reading all its records. A mark counts the changes and holds what the last one said.
CREATE TABLE provenance_marks (
    subject TEXT PRIMARY KEY,               -- path of a note, or 'session ' and the id of a dumped session
    changes INTEGER NOT NULL,
    last    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER note_records_arrived AFTER INSERT ON note_records BEGIN
    INSERT INTO provenance_marks VALUES (new.path, 1, new.file_hash || ' ' || new.updated_at)
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER note_records_changed AFTER UPDATE ON note_records BEGIN
    INSERT INTO provenance_marks VALUES (new.path, 1, new.file_hash || ' ' || new.updated_at)
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER note_records_left AFTER DELETE ON note_records BEGIN
    INSERT INTO provenance_marks VALUES (old.path, 1, '')
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER reported_writes_arrived AFTER INSERT ON reported_writes BEGIN
    INSERT INTO provenance_marks VALUES (new.path, 1, new.line_hash || ' ' || new.session_id || ' ' || new.origin_class)
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER reported_writes_changed AFTER UPDATE ON reported_writes BEGIN
    INSERT INTO provenance_marks VALUES (new.path, 1, new.line_hash || ' ' || new.session_id || ' ' || new.origin_class)
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER reported_writes_left AFTER DELETE ON reported_writes BEGIN
    INSERT INTO provenance_marks VALUES (old.path, 1, '')
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER transcripts_arrived AFTER INSERT ON transcripts WHEN new.session_id IS NOT NULL BEGIN
    INSERT INTO provenance_marks VALUES ('session ' || new.session_id, 1, new.prefix_hash || ' ' || new.session_kind)
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER transcripts_changed AFTER UPDATE OF session_id, read_to, prefix_hash, session_kind ON transcripts
WHEN new.session_id IS NOT NULL AND (new.session_id, new.read_to, new.prefix_hash, new.session_kind)
    IS NOT (old.session_id, old.read_to, old.prefix_hash, old.session_kind)
BEGIN
    INSERT INTO provenance_marks VALUES ('session ' || new.session_id, 1, new.prefix_hash || ' ' || new.session_kind)
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;
CREATE TRIGGER transcripts_left AFTER DELETE ON transcripts WHEN old.session_id IS NOT NULL BEGIN
    INSERT INTO provenance_marks VALUES ('session ' || old.session_id, 1, '')
    ON CONFLICT (subject) DO UPDATE SET changes = changes + 1, last = excluded.last;
END;

INSERT INTO provenance_marks
SELECT path, count(*), max(last) FROM (
    SELECT path, file_hash || ' ' || updated_at AS last FROM note_records
    UNION ALL SELECT path, line_hash || ' ' || session_id || ' ' || origin_class FROM reported_writes
) GROUP BY path;
INSERT INTO provenance_marks
SELECT 'session ' || session_id, count(*), max(prefix_hash || ' ' || session_kind) FROM transcripts
WHERE session_id IS NOT NULL GROUP BY session_id;
