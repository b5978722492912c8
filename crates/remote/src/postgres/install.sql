-- What enrolling puts into a database: a schema of our own. It can be run again.
--
-- A row is kept as the text of its composite type, written under fixed settings. That text is exact for every type, since it
-- is what a dump holds; `jsonb` would lose the spelling of a `json`, of a `numeric` and of a number too wide.

CREATE SCHEMA IF NOT EXISTS backout;

-- Who this database is: one row.
CREATE TABLE IF NOT EXISTS backout.identity (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    name text NOT NULL,
    format integer NOT NULL DEFAULT 1,
    only_one boolean NOT NULL DEFAULT true UNIQUE CHECK (only_one)
);

-- Where the database was when it was enrolled, so that a copy of it is not taken for it.
ALTER TABLE backout.identity ADD COLUMN IF NOT EXISTS cluster text;
ALTER TABLE backout.identity ADD COLUMN IF NOT EXISTS database oid;

-- What the columns of a table were when its triggers were made.
CREATE TABLE IF NOT EXISTS backout.shape (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation oid NOT NULL,
    columns text NOT NULL,
    UNIQUE (relation, columns)
);

-- Every change of a row. `place` tells their order within a transaction.
CREATE TABLE IF NOT EXISTS backout.log (
    xact xid8 NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    relation oid NOT NULL,
    shape integer NOT NULL,
    before text,
    after text,
    PRIMARY KEY (xact, place)
);

-- Who made a transaction, once for each that changed a row.
CREATE TABLE IF NOT EXISTS backout.transaction (
    xact xid8 PRIMARY KEY,
    operation text,
    agent text,
    application text,
    role text NOT NULL,
    at timestamptz NOT NULL,
    ddl text
);

-- Which operation of a journal stands for a transaction. Written with the change, or when the change is adopted.
CREATE TABLE IF NOT EXISTS backout.marker (
    operation text PRIMARY KEY,
    xact xid8 NOT NULL UNIQUE,
    at timestamptz NOT NULL DEFAULT now()
);

-- Notes who makes this transaction; once, as a setting of the transaction tells.
CREATE OR REPLACE FUNCTION backout.note_transaction() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO backout.transaction (xact, operation, agent, application, role, at)
    VALUES (
        pg_current_xact_id(),
        nullif(current_setting('backout.operation', true), ''),
        nullif(current_setting('backout.agent', true), ''),
        nullif(current_setting('application_name'), ''),
        session_user,
        clock_timestamp()
    ) ON CONFLICT DO NOTHING;
    PERFORM set_config('backout.noted', pg_current_xact_id()::text, true);
END $$;

-- Keeps a row as it was and as it is. The settings make its text exact, whatever those of the session are.
CREATE OR REPLACE FUNCTION backout.log_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET "DateStyle" = 'ISO, MDY'
SET "IntervalStyle" = 'postgres'
SET "TimeZone" = 'UTC'
SET extra_float_digits = 1
SET bytea_output = 'hex'
SET lc_monetary = 'C'
SET quote_all_identifiers = off
AS $$
BEGIN
    IF current_setting('backout.noted', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        PERFORM backout.note_transaction();
    END IF;
    IF TG_OP = 'INSERT' THEN
        INSERT INTO backout.log (xact, relation, shape, before, after)
        VALUES (pg_current_xact_id(), TG_RELID, TG_ARGV[0]::integer, NULL, NEW::text);
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO backout.log (xact, relation, shape, before, after)
        VALUES (pg_current_xact_id(), TG_RELID, TG_ARGV[0]::integer, OLD::text, NULL);
    ELSE
        INSERT INTO backout.log (xact, relation, shape, before, after)
        VALUES (pg_current_xact_id(), TG_RELID, TG_ARGV[0]::integer, OLD::text, NEW::text);
    END IF;
    RETURN NULL;
END $$;

-- Keeps all rows of a table that is about to be emptied.
CREATE OR REPLACE FUNCTION backout.log_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET "DateStyle" = 'ISO, MDY'
SET "IntervalStyle" = 'postgres'
SET "TimeZone" = 'UTC'
SET extra_float_digits = 1
SET bytea_output = 'hex'
SET lc_monetary = 'C'
SET quote_all_identifiers = off
SET row_security = off
AS $$
BEGIN
    IF current_setting('backout.noted', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        PERFORM backout.note_transaction();
    END IF;
    EXECUTE format(
        'INSERT INTO backout.log (xact, relation, shape, before, after)
         SELECT pg_current_xact_id(), %s, %s, (t.*)::text, NULL FROM ONLY %s t',
        TG_RELID, TG_ARGV[0], TG_RELID::regclass);
    RETURN NULL;
END $$;

-- Says what the columns of a table are.
CREATE OR REPLACE FUNCTION backout.columns_of(oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(string_agg(
        format('%s %I %s', attnum, attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum), '')
    FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped
$$;

-- Names the tables that should be covered: ordinary ones, partitions among them, that are neither ours nor the server's, nor
-- temporary, nor an extension's own.
CREATE OR REPLACE VIEW backout.coverable AS
    SELECT c.oid AS relation, backout.columns_of(c.oid) AS columns
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname NOT SIMILAR TO 'backout(\_[0-9]+)?'
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                      WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e');

-- Tells of each such table whether its triggers are there, run always, and know the columns that it has now.
CREATE OR REPLACE VIEW backout.coverage AS
    SELECT t.relation, t.columns,
        (SELECT count(*) = 2 FROM pg_catalog.pg_trigger g JOIN backout.shape s
            ON s.relation = t.relation AND s.columns = t.columns
               AND encode(g.tgargs, 'escape') = s.id || E'\\000'
         WHERE g.tgrelid = t.relation AND g.tgname IN ('!backout_row', '!backout_truncate') AND g.tgenabled = 'A') AS covered
    FROM backout.coverable t;

-- Makes the triggers of one table, or makes them anew. Gives back why that could not be done.
CREATE OR REPLACE FUNCTION backout.cover(oid) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shape_id integer;
    wanted text := backout.columns_of($1);
BEGIN
    -- What watches the schema need not hear of it.
    PERFORM set_config('backout.covering', 'on', true);
    SELECT id INTO shape_id FROM backout.shape WHERE relation = $1 AND columns = wanted;
    IF shape_id IS NULL THEN
        INSERT INTO backout.shape (relation, columns) VALUES ($1, wanted) RETURNING id INTO shape_id;
    END IF;
    EXECUTE format('DROP TRIGGER IF EXISTS "!backout_row" ON %s', $1::regclass);
    EXECUTE format('DROP TRIGGER IF EXISTS "!backout_truncate" ON %s', $1::regclass);
    EXECUTE format('CREATE TRIGGER "!backout_row" AFTER INSERT OR UPDATE OR DELETE ON %s
        FOR EACH ROW EXECUTE FUNCTION backout.log_row(%L)', $1::regclass, shape_id);
    EXECUTE format('CREATE TRIGGER "!backout_truncate" BEFORE TRUNCATE ON %s
        FOR EACH STATEMENT EXECUTE FUNCTION backout.log_truncate(%L)', $1::regclass, shape_id);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER "!backout_row"', $1::regclass);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER "!backout_truncate"', $1::regclass);
    PERFORM set_config('backout.covering', '', true);
    RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN SQLERRM;
END $$;

-- Keeps the log from being changed by hand, also by a superuser who did not mean to.
CREATE OR REPLACE FUNCTION backout.guard() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('backout.covering', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'the log of Backout is not changed by hand'
            USING HINT = 'backout db unenroll takes all of it away';
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    guarded text;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['identity', 'shape', 'log', 'marker'] LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS guard ON backout.%I', guarded);
        EXECUTE format('CREATE TRIGGER guard BEFORE UPDATE OR DELETE OR TRUNCATE ON backout.%I
            FOR EACH STATEMENT EXECUTE FUNCTION backout.guard()', guarded);
        EXECUTE format('ALTER TABLE backout.%I ENABLE ALWAYS TRIGGER guard', guarded);
    END LOOP;
END $$;

REVOKE ALL ON SCHEMA backout FROM PUBLIC;
