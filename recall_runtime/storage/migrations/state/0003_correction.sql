-- Whether a place states its claim as a correction ("Update: ...").
ALTER TABLE evidence ADD COLUMN correction INTEGER NOT NULL DEFAULT 0 CHECK (correction IN (0, 1));
