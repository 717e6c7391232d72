UPDATE emails
SET status = 'FAILED', next_attempt_at = NULL, finished_at = now(),
    last_error = 'it waited for too long, and no mail server is configured'
WHERE id IN (
    SELECT id FROM emails WHERE status = 'PENDING' AND created_at < $1
    ORDER BY next_attempt_at LIMIT $2 FOR UPDATE SKIP LOCKED)
