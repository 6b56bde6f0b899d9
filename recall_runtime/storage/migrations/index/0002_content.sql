-- What a text says at all, decided once when it is written (index.content).
ALTER TABLE entries ADD COLUMN shapes TEXT NOT NULL DEFAULT '';    -- masked values, each with its mark, joined by blanks
ALTER TABLE entries ADD COLUMN substance REAL NOT NULL DEFAULT 1;  -- how much of an answer the text can be, 0..1
CREATE INDEX entries_by_project ON entries (project_key) WHERE project_key IS NOT NULL;
