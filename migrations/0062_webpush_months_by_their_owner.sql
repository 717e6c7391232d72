-- A node of webpush-connection makes and drops months, and its role owns no tables where each service has one of its own: the functions do so as their
-- owner. Nothing that the caller names is looked up by them.
SET LOCAL lock_timeout = '5s';

ALTER FUNCTION create_webpush_partitions(date, integer) SECURITY DEFINER SET search_path = public, pg_temp;
ALTER FUNCTION drop_webpush_partitions(date) SECURITY DEFINER SET search_path = public, pg_temp;
