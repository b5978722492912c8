-- What only a superuser can install: new tables are covered as they are made, and changes of the schema are noted.

CREATE OR REPLACE FUNCTION backout.schema_changed() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it record;
    tags text;
BEGIN
    -- Our own triggers are changes of the schema, too.
    IF current_setting('backout.covering', true) = 'on' THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT command_tag || coalesce(' ' || object_identity, ''), ', ') INTO tags
    FROM pg_event_trigger_ddl_commands()
    WHERE schema_name IS DISTINCT FROM 'pg_temp' AND schema_name IS DISTINCT FROM 'backout';
    IF tags IS NULL THEN
        RETURN;
    END IF;
    PERFORM backout.note_transaction();
    UPDATE backout.transaction SET ddl = concat_ws(', ', ddl, tags) WHERE xact = pg_current_xact_id();
    FOR it IN SELECT relation FROM backout.coverage WHERE NOT covered LOOP
        PERFORM backout.cover(it.relation);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION backout.schema_dropped() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tags text;
BEGIN
    IF current_setting('backout.covering', true) = 'on' THEN
        RETURN;
    END IF;
    SELECT string_agg(DISTINCT 'DROP ' || upper(object_type) || ' ' || object_identity, ', ') INTO tags
    FROM pg_event_trigger_dropped_objects()
    WHERE (original OR normal) AND NOT is_temporary AND schema_name IS DISTINCT FROM 'backout';
    IF tags IS NULL THEN
        RETURN;
    END IF;
    PERFORM backout.note_transaction();
    UPDATE backout.transaction SET ddl = concat_ws(', ', ddl, tags) WHERE xact = pg_current_xact_id();
END $$;

DROP EVENT TRIGGER IF EXISTS backout_schema_changed;
CREATE EVENT TRIGGER backout_schema_changed ON ddl_command_end EXECUTE FUNCTION backout.schema_changed();
DROP EVENT TRIGGER IF EXISTS backout_schema_dropped;
CREATE EVENT TRIGGER backout_schema_dropped ON sql_drop EXECUTE FUNCTION backout.schema_dropped();
ALTER EVENT TRIGGER backout_schema_changed ENABLE ALWAYS;
ALTER EVENT TRIGGER backout_schema_dropped ENABLE ALWAYS;
