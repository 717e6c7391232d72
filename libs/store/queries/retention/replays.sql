DELETE FROM replays WHERE id IN (
    SELECT id FROM replays WHERE id < $1 AND finished_at < $2
    ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
