-- What SQL sees of the jobs, and the view into which rows are copied; weekwheel-postgres(7) describes them. Setup runs this before
-- functions.sql; it may be repeated.
--
-- The owner's rows have the form of the journal (lib/jobs/store/changes.h, lib/jobs/local/record.h, .../history.c). These functions
-- read it as a start of the owner does: slots without what is gone, then turns, of which the later change of a key counts, then
-- what the inbox has beyond them. TRUNCATE obeys no snapshot: they are VOLATILE, so that theirs is
-- taken after their locks; a snapshot of REPEATABLE READ may miss jobs that were written on since. So a view has what is committed,
-- costs nothing as long as nobody looks, and needs no server. It knows nothing of leases. A look reads all rows. No statistics are kept of these tables, so
-- PostgreSQL expects the worst, and would compile for half a minute what then takes some milliseconds: no jit.
SET LOCAL check_function_bodies = off; -- has_right comes later

-- Eight bytes from `at` on, the highest first.
CREATE OR REPLACE FUNCTION weekwheel.number_at(bytes bytea, at int) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	$$SELECT ('x' || encode(substring(bytes FROM at + 1 FOR 8), 'hex'))::bit(64)::bigint$$;

-- Keys, groups and errors are any bytes.
CREATE OR REPLACE FUNCTION weekwheel.text_of(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN CASE WHEN bytes <> '' THEN convert_from(bytes, 'UTF8') END;
EXCEPTION WHEN data_exception THEN
	RETURN encode(bytes, 'escape');
END $$;

CREATE OR REPLACE FUNCTION weekwheel.time_of(ns bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
	$$SELECT timestamptz 'epoch' + ns / 1000 * interval '1 microsecond'$$;

CREATE OR REPLACE FUNCTION weekwheel.interval_of(ns bigint) RETURNS interval LANGUAGE sql IMMUTABLE AS
	$$SELECT ns / 1000 * interval '1 microsecond'$$;

-- The changes in tables up to `last`, in order. value NULL: the key is removed.
CREATE OR REPLACE FUNCTION weekwheel.pairs(changes bytea, last int) RETURNS TABLE (place int, kind int, key bytea, value bytea)
LANGUAGE plpgsql IMMUTABLE ROWS 10 AS $$
DECLARE
	at int := 0;
	keys int;
	size int;
BEGIN
	changes := changes || ''::bytea; -- once from where it is stored, not for each byte
	WHILE at < octet_length(changes) LOOP
		-- These numbers have the order of the server's machine: the lowest byte first.
		size := get_byte(changes, at) | (get_byte(changes, at + 1) << 8) | (get_byte(changes, at + 2) << 16)
			| (get_byte(changes, at + 3) << 24);
		keys := get_byte(changes, at + 4) | (get_byte(changes, at + 5) << 8);
		kind := get_byte(changes, at + 6);
		IF kind <= last THEN
			place := at;
			key := substring(changes FROM at + 9 FOR keys);
			value := CASE get_byte(changes, at + 8 + keys) WHEN 1 THEN substring(changes FROM at + 10 + keys FOR size) END;
			RETURN NEXT;
		END IF;
		at := at + 9 + keys + size;
	END LOOP;
END $$;

-- The 37 fields of a job's record, and where its bytes begin.
CREATE OR REPLACE FUNCTION weekwheel.fields(record bytea) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	fields bigint[] := array_fill(0::bigint, '{38}');
	which bigint;
	number bigint;
	at int := 1;
	byte int;
	shift int;
BEGIN
	FOR field IN 0..37 LOOP
		CONTINUE WHEN field > 0 AND which >> field - 1 & 1 = 0;
		number := 0;
		shift := 0;
		LOOP
			byte := get_byte(record, at);
			number := number | ((byte & 127)::bigint << shift);
			at := at + 1;
			shift := shift + 7;
			EXIT WHEN byte < 128;
		END LOOP;
		IF field = 0 THEN
			which := number;
		ELSE
			fields[field] := number;
		END IF;
	END LOOP;
	fields[38] := at;
	RETURN fields;
END $$;

-- Spans are whole seconds, or odd: ns.
CREATE OR REPLACE FUNCTION weekwheel.unpack_span(packed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE packed & 1 WHEN 0 THEN (packed >> 1) * 1000000000 ELSE packed >> 1 & 9223372036854775807 END$$;

CREATE OR REPLACE FUNCTION weekwheel.unpack_difference(packed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	$$SELECT (packed >> 1 & 9223372036854775807) # -(packed & 1)$$;

-- The headers of a job, NULL if it has none.
CREATE OR REPLACE FUNCTION weekwheel.headers_of(lines bytea) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
	SELECT jsonb_object_agg(split_part(line, ': ', 1), substring(line FROM position(': ' IN line) + 2))
	FROM string_to_table(convert_from(lines, 'UTF8'), E'\n') line WHERE line <> ''
$$;

-- With other columns it is another function. Views on it, also those of others, stay when theirs are made anew.
DO $$
BEGIN
	IF pg_get_function_result(to_regprocedure('weekwheel.read_jobs()')) NOT LIKE '%expires%' THEN
		ALTER FUNCTION weekwheel.read_jobs() RENAME TO read_former_jobs;
	END IF;
END $$;

-- All jobs in tubes to which the caller has a right.
CREATE OR REPLACE FUNCTION weekwheel.read_jobs() RETURNS TABLE (id bigint, tube text, state text, key text, "group" text,
	priority bigint, due timestamptz, created timestamptz, run interval, every interval, missed text, skip interval,
	attempts bigint, backoff interval, backoff_max interval, keep interval, tries bigint, reserves bigint, timeouts bigint,
	releases bigint, buries bigint, kicks bigint, error text, body bytea, headers jsonb, expires timestamptz)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
WITH departure AS (
	SELECT slot, unnest(ids) AS id, unnest(turns) AS turn FROM weekwheel.gone
), pair AS MATERIALIZED (
	SELECT DISTINCT ON (kind, key) kind, key, value FROM (
		SELECT turn, place, kind, key, value FROM weekwheel.turn, weekwheel.pairs(changes, 6)
		UNION ALL SELECT turn, -1, kind, key, value FROM weekwheel.job, weekwheel.pairs(job.pair, 6) WHERE NOT EXISTS (
			SELECT FROM departure WHERE departure.slot = job.slot AND departure.id = job.id AND departure.turn > job.turn)) AS change
	ORDER BY kind, key, turn DESC, place DESC
), tube AS (
	SELECT ('x' || encode(key, 'hex'))::bit(32)::int AS number, convert_from(substring(value FROM 17 FOR CASE
		position('\x00'::bytea IN substring(value FROM 17)) WHEN 0 THEN octet_length(value)
		ELSE position('\x00'::bytea IN substring(value FROM 17)) - 1 END), 'UTF8') AS name
	FROM pair WHERE kind = 6 AND value IS NOT NULL
), fresh AS (
	SELECT * FROM weekwheel.inbox WHERE verb = 0
), permitted AS MATERIALIZED (
	SELECT name FROM (SELECT name FROM tube UNION SELECT fresh.tube FROM fresh) AS any_tube WHERE weekwheel.has_right(name)
), clock AS (
	-- Of the last write: how far the elapsed clock, of which most due times are, is behind the wall clock.
	SELECT coalesce(max(weekwheel.number_at(value, 32) - weekwheel.number_at(value, 24)), 0) AS behind
	FROM pair WHERE kind = 0 AND key = 'now' AND value IS NOT NULL
), record AS MATERIALIZED ( -- fields once for each
	SELECT kind, weekwheel.number_at(key, octet_length(key) - 8) AS id, weekwheel.fields(value) AS n, value,
		CASE WHEN kind < 4 THEN weekwheel.number_at(key, 0) END AS waits
	FROM pair WHERE kind IN (2, 3, 4) AND value IS NOT NULL
), job AS (
	SELECT record.*, coalesce(waits, n[24]) AS due, weekwheel.unpack_span(n[3]) AS delay,
		CASE WHEN kind = 3 OR n[11] & 1 = 1 THEN 0 ELSE behind END AS behind
	FROM record, clock WHERE n[28] = 0
)
SELECT job.id, permitted.name,
	CASE WHEN kind = 4 THEN 'buried' WHEN weekwheel.time_of(due + behind) > clock_timestamp() THEN 'delayed' ELSE 'ready' END,
	weekwheel.text_of(substring(value FROM n[38]::int + 1 FOR n[7]::int)),
	weekwheel.text_of(substring(value FROM (n[38] + n[7] + n[25] + n[2])::int + 1 FOR n[29]::int)),
	n[5], CASE WHEN kind < 4 THEN weekwheel.time_of(due + behind) END, weekwheel.time_of(due - delay + weekwheel.unpack_difference(n[4]) + behind),
	weekwheel.interval_of(weekwheel.unpack_span(n[1])), weekwheel.interval_of(nullif(weekwheel.unpack_span(n[10]), 0)),
	('{once,all,skip}'::text[])[n[15] + 1], weekwheel.interval_of(n[16]), n[12], weekwheel.interval_of(n[13]),
	weekwheel.interval_of(n[14]), weekwheel.interval_of(weekwheel.unpack_span(n[30])), n[17], n[18], n[19], n[20], n[21], n[22],
	weekwheel.text_of(substring(value FROM (n[38] + n[7])::int + 1 FOR n[25]::int)),
	substring(value FROM (n[38] + n[7] + n[25])::int + 1 FOR n[2]::int),
	weekwheel.headers_of(substring(value FROM (n[38] + n[7] + n[25] + n[2] + n[29])::int + 1 FOR n[35]::int)),
	CASE WHEN kind < 4 AND n[33] > 0 THEN weekwheel.time_of(due + weekwheel.unpack_difference(n[8]) + weekwheel.unpack_span(n[32])
		+ weekwheel.unpack_difference(n[33] - 1) + behind) END
FROM job JOIN tube ON tube.number = n[6] JOIN permitted USING (name)
UNION ALL
SELECT coalesce(many.id, fresh.id), fresh.tube, 'new', weekwheel.text_of((options).key), weekwheel.text_of((options)."group"),
	coalesce((options).priority, 1024), fresh.due, NULL, weekwheel.interval_of(coalesce((options).run, 60000000000)),
	weekwheel.interval_of((options).period), ('{once,all,skip}'::text[])[coalesce((options).missed, 0) + 1],
	weekwheel.interval_of(coalesce((options).skip, 0)), coalesce((options).attempts, 0),
	weekwheel.interval_of(coalesce((options).backoff, 0)), weekwheel.interval_of(coalesce((options).backoff_max, 3600000000000)),
	weekwheel.interval_of(coalesce((options).keep, 0)), 0, 0, 0, 0, 0, 0, NULL, CASE WHEN many.id IS NULL THEN body END,
	weekwheel.headers_of((options).headers), fresh.due + weekwheel.interval_of(nullif((options).expire, 0))
FROM fresh JOIN permitted ON permitted.name = fresh.tube LEFT JOIN unnest((options).ids) AS many (id) ON true
WHERE NOT EXISTS (SELECT FROM (SELECT unnest(taken) AS id FROM weekwheel.turn) AS known WHERE known.id = coalesce(many.id, fresh.id))
$$;

-- How runs of jobs ended that keep that.
CREATE OR REPLACE FUNCTION weekwheel.read_runs() RETURNS TABLE (number bigint, job bigint, tube text, key text, attempt bigint,
	outcome text, ended timestamptz, error text, report bytea)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
WITH pair AS MATERIALIZED (
	SELECT DISTINCT ON (key) key, value FROM (SELECT turn, place, key, value FROM weekwheel.turn, weekwheel.pairs(changes, 0)) AS change
	ORDER BY key, turn DESC, place DESC
), run AS MATERIALIZED (
	SELECT key, value, 38 + get_byte(value, 34) AS after_tube, get_byte(value, 35) AS keys,
		get_byte(value, 36) << 8 | get_byte(value, 37) AS errors,
		convert_from(substring(value FROM 39 FOR get_byte(value, 34)), 'UTF8') AS tube
	FROM pair WHERE key LIKE 'run%' AND octet_length(key) = 11 AND value IS NOT NULL
)
SELECT weekwheel.number_at(key, 3), weekwheel.number_at(value, 2), tube, weekwheel.text_of(substring(value FROM after_tube + 1 FOR keys)),
	weekwheel.number_at(value, 10), CASE get_byte(value, 1) WHEN 5 THEN 'finished' WHEN 6 THEN 'released' WHEN 7 THEN 'timed-out' WHEN 9 THEN 'buried' WHEN 12 THEN 'expired' END, weekwheel.time_of(weekwheel.number_at(value, 18)),
	weekwheel.text_of(substring(value FROM after_tube + keys + 1 FOR errors)), substring(value FROM after_tube + keys + errors + 1)
FROM run
WHERE tube IN (SELECT name FROM (SELECT DISTINCT tube FROM run) AS any_tube (name) WHERE weekwheel.has_right(name))
	AND weekwheel.number_at(value, 26) > (SELECT weekwheel.number_at(value, 24) FROM pair WHERE key = 'now')
$$;

CREATE OR REPLACE VIEW weekwheel.jobs AS SELECT * FROM weekwheel.read_jobs();
CREATE OR REPLACE VIEW weekwheel.buried AS SELECT * FROM weekwheel.read_jobs() WHERE state = 'buried';
CREATE OR REPLACE VIEW weekwheel.tubes AS SELECT tube, count(*) FILTER (WHERE state = 'new') AS new,
	count(*) FILTER (WHERE state = 'delayed') AS delayed, count(*) FILTER (WHERE state = 'ready') AS ready,
	count(*) FILTER (WHERE state = 'buried') AS buried, min(due) FILTER (WHERE state = 'ready') AS oldest
	FROM weekwheel.read_jobs() GROUP BY tube;
CREATE OR REPLACE VIEW weekwheel.runs AS SELECT * FROM weekwheel.read_runs();

DROP FUNCTION IF EXISTS weekwheel.read_former_jobs();

-- Each row that is inserted or copied into this view is a put. It has no rows itself.
CREATE OR REPLACE VIEW weekwheel.puts AS SELECT NULL::bigint AS id, NULL::text AS tube, NULL::text AS body, NULL::bytea AS body_bytes,
	NULL::interval AS delay, NULL::timestamptz AS at, NULL::bigint AS priority, NULL::interval AS run, NULL::interval AS every,
	NULL::text AS missed, NULL::interval AS skip, NULL::bigint AS attempts, NULL::interval AS backoff, NULL::interval AS backoff_max,
	NULL::text AS key, NULL::bytea AS key_bytes, NULL::text AS mode, NULL::interval AS debounce, NULL::interval AS "unique",
	NULL::text AS "group", NULL::bytea AS group_bytes, NULL::interval AS keep,
	NULL::interval AS expire, NULL::text AS expired, NULL::jsonb AS headers,
	NULL::interval AS spread, NULL::jsonb AS "then" WHERE false;

-- It runs as the caller, for whom put demands the right.
CREATE OR REPLACE FUNCTION weekwheel.put_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.body IS NOT NULL AND NEW.body_bytes IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'body and body_bytes exclude each other', HINT = 'Leave one out.';
	END IF;
	NEW.id := weekwheel.put(NEW.tube, coalesce(NEW.body_bytes, pg_catalog.convert_to(NEW.body, 'UTF8')), NEW.delay, NEW.at, NEW.priority, NEW.run,
		NEW.every, NEW.missed, NEW.skip, NEW.attempts, NEW.backoff, NEW.backoff_max, NEW.key, NEW.key_bytes, NEW.mode, NEW.debounce,
		NEW."unique", NEW."group", NEW.group_bytes, NEW.keep, NEW.expire, NEW.expired, NEW.headers, NEW.spread, NEW."then");
	RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER put_row INSTEAD OF INSERT ON weekwheel.puts FOR EACH ROW EXECUTE FUNCTION weekwheel.put_row();
