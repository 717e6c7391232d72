DELETE FROM dead_letter_jobs WHERE finished_at < $1
