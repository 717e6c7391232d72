-- Roles for the services, so that none of them owns the schema. Run it by psql, connected to the database of Postrider as a superuser, before the
-- first migration and once more behind it; it changes nothing that is as it should be. The right to connect is taken from PUBLIC: give it to the roles
-- of a backup or an exporter by name.
--
--   psql --dbname postrider --file deploy/postgres/roles.sql
--   psql --dbname postrider --command '\password postrider_ingest_api'      and so on, for each role that logs in
--
-- postrider_owner    owns the schema. The migration logs in as postrider_migration and is it from the start of a session on, and so is the retry
--                    worker: it makes and drops partitions and indexes. webpush-connection makes and drops those of Web Push by functions of its.
-- postrider_service  what every other service may: read and write rows, in the audit log only add them.
--
-- Privileges stand on the two groups and not on each service: which statements a service runs changes with every version, and a privilege that is
-- missing shows at night. The logins of their own tell the services apart in pg_stat_activity, in the server's log and in pg_hba.conf, and a password
-- that leaked is changed for one of them.
\set ON_ERROR_STOP on
SET client_min_messages = warning;

SELECT format('CREATE ROLE %I NOLOGIN', name)
FROM unnest(ARRAY ['postrider_owner', 'postrider_service']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY ['postrider_migration', 'postrider_retry_worker', 'postrider_ingest_api', 'postrider_dispatcher', 'postrider_reseller_portal',
                   'postrider_operator_api', 'postrider_webpush_endpoint', 'postrider_webpush_connection']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

GRANT postrider_owner TO postrider_migration, postrider_retry_worker;
-- What they make belongs to the group, so that either can change it.
ALTER ROLE postrider_migration SET role = 'postrider_owner';
ALTER ROLE postrider_retry_worker SET role = 'postrider_owner';
-- A replay stays behind the transactions of other services that are under way, and has to see when they began.
GRANT pg_read_all_stats TO postrider_owner;
GRANT postrider_service TO postrider_ingest_api, postrider_dispatcher, postrider_reseller_portal, postrider_operator_api,
    postrider_webpush_endpoint, postrider_webpush_connection;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
SELECT format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database())
\gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO postrider_owner, postrider_service', current_database())
\gexec
-- Migrations use tables of their own session.
SELECT format('GRANT TEMPORARY ON DATABASE %I TO postrider_owner', current_database())
\gexec
GRANT USAGE, CREATE ON SCHEMA public TO postrider_owner;
GRANT USAGE ON SCHEMA public TO postrider_service;

-- An installation of before, whose schema another role owns. What runs with that role goes on until its URL is changed; then run this once more, for
-- the partitions that the old retry worker has made meanwhile.
SELECT DISTINCT format('GRANT postrider_owner TO %s', r.oid::regrole)
FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT r.rolsuper AND r.rolname <> 'postrider_owner'
\gexec
SELECT format('ALTER %s %s OWNER TO postrider_owner', kind, name)
FROM (SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, c.oid::regclass::text AS name
      FROM pg_class c
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S') AND c.relowner <> 'postrider_owner'::regrole
        -- The sequence of a column goes with its table.
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i') AND c.relkind = 'S')
      UNION ALL
      SELECT 'FUNCTION', p.oid::regprocedure::text FROM pg_proc p
      WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> 'postrider_owner'::regrole AND p.prokind = 'f'
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')) AS theirs
\gexec

-- Tables that there are, and those that migrations make later.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO postrider_service;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO postrider_service;
ALTER DEFAULT PRIVILEGES FOR ROLE postrider_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO postrider_service;
ALTER DEFAULT PRIVILEGES FOR ROLE postrider_owner IN SCHEMA public GRANT USAGE ON SEQUENCES TO postrider_service;

-- Once they are there: nothing that was done is taken out of the log, and no service rewrites which migrations have run.
SELECT format('REVOKE INSERT, UPDATE, DELETE ON %I FROM postrider_service', table_name)
FROM (VALUES ('_sqlx_migrations')) AS kept(table_name) WHERE to_regclass('public.' || table_name) IS NOT NULL
UNION ALL
SELECT format('REVOKE UPDATE, DELETE ON %I FROM postrider_service', table_name)
FROM (VALUES ('audit_log')) AS kept(table_name) WHERE to_regclass('public.' || table_name) IS NOT NULL
\gexec
