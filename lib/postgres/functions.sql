-- The functions for SQL, which weekwheel-postgres(7) describes: made anew by each "weekwheel postgres setup".
--
-- put, put_many, cancel and move append a row to the inbox, as the owner of the schema. They take no lock that lasts longer
-- than the transaction, and read nothing that another transaction could change under them, so that they work at each level of
-- isolation and behind a pool. What they cost is what a put costs: the usual path has expressions and one INSERT.
--
-- The caller's search_path may lead to functions, operators, types and tables of somebody's. SET search_path keeps them away
-- from a function and from those that it calls, but takes long: the usual path of put does without, and names the schema of
-- each function, operator, type and collation. CASE with a value, IN, BETWEEN and IS DISTINCT FROM have an operator without
-- one.

-- Whether it is the first setup, for the rights at the end.
SELECT set_config('weekwheel.is_new', (to_regprocedure('weekwheel.allow(name, text)') IS NULL)::text, true);

-- How the owner finds a job that it does not have in memory.
CREATE INDEX IF NOT EXISTS job_id ON weekwheel.job (id);

-- ---- Errors, as an exception with the field, its range and a hint

CREATE OR REPLACE FUNCTION weekwheel.refuse(state text, message text, hint text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = hint;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.check_tube(tube text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF tube IS NULL THEN
		PERFORM weekwheel.refuse('22004', 'tube is null', 'Name the tube, such as ''mail''.');
	END IF;
	IF octet_length(tube) > 200 OR tube COLLATE "C" !~ '^[A-Za-z0-9+/;.$_()][-A-Za-z0-9+/;.$_()]*$' THEN
		PERFORM weekwheel.refuse('22023',
			format('tube is %L, and must be a name of 1 to 200 letters, digits and + / ; . $ _ ( ) -', left(tube, 210)),
			'It does not begin with a dash. The first argument is the tube, the second the body.');
	END IF;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.check_body(body bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF body IS NULL THEN
		PERFORM weekwheel.refuse('22004', 'body is null', 'An empty body is ''''; coalesce(..., '''') gives one.');
	END IF;
	IF octet_length(body) > 268435456 THEN
		PERFORM weekwheel.refuse('22023', format('body has %s bytes, and must have at most 268435456', octet_length(body)),
			'Keep it in a table, and put its key.');
	END IF;
END $$;

-- A length of time in ns. It counts a month as 30 days, as intervals do in PostgreSQL. No time is beyond 2^62 ns.
CREATE OR REPLACE FUNCTION weekwheel.span(field text, value interval, shortest interval) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	seconds numeric := extract(epoch FROM value);
BEGIN
	IF value < shortest OR seconds > 4611686018 THEN
		PERFORM weekwheel.refuse('22003', format('%s is %s, and must be %s to 4611686018 seconds', field, value,
			CASE extract(epoch FROM shortest) WHEN 0 THEN '0' WHEN 1 THEN '1 second' ELSE '1 millisecond' END),
			format('Give an interval, such as %s => ''5 minutes''.', quote_ident(field)));
	END IF;
	RETURN seconds * 1000000000;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.count(field text, value bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	IF value < 0 OR value > 4294967295 THEN
		PERFORM weekwheel.refuse('22003', format('%s is %s, and must be 0 to 4294967295', field, value),
			CASE field WHEN 'priority' THEN 'Lower is delivered first; the usual is 1024.' ELSE '0 is no limit.' END);
	END IF;
	RETURN value;
END $$;

-- The bytes of a key or a group, given as text or as bytes.
CREATE OR REPLACE FUNCTION weekwheel.bytes(field text, value text, bytes bytea) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
	result bytea := coalesce(bytes, convert_to(value, 'UTF8'));
BEGIN
	IF value IS NOT NULL AND bytes IS NOT NULL THEN
		PERFORM weekwheel.refuse('22023', format('%s and %s_bytes exclude each other', field, field), 'Leave one out.');
	END IF;
	IF octet_length(result) NOT BETWEEN 1 AND 200 THEN
		PERFORM weekwheel.refuse('22023', format('%s has %s bytes, and must have 1 to 200', field, octet_length(result)),
			format('Leave it out, or null, for none. A hash of what is longer will do as a %s.', field));
	END IF;
	RETURN result;
END $$;

-- The lines of headers, as ww_job_headers_add writes them.
CREATE OR REPLACE FUNCTION weekwheel.lines_of(headers jsonb) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
	name text;
	value jsonb;
	names text[] := '{}';
	lines text := '';
BEGIN
	IF headers IS NULL OR headers = 'null' THEN
		RETURN NULL;
	END IF;
	IF jsonb_typeof(headers) <> 'object' THEN
		PERFORM weekwheel.refuse('22023', format('headers is of type %s, and must be an object of names and values',
			jsonb_typeof(headers)), 'Give such as headers => ''{"tenant": "acme"}''.');
	END IF;
	FOR name, value IN SELECT * FROM jsonb_each(headers) LOOP
		IF name COLLATE "C" !~ '^[-A-Za-z0-9!#$%&''*+.^_`|~]+$' THEN
			PERFORM weekwheel.refuse('22023', format('headers has the name %L, and a name must be letters, digits and '
				'! # $ %% & '' * + - . ^ _ ` | ~', left(name, 100)), 'Give such as headers => ''{"tenant": "acme"}''.');
		END IF;
		IF jsonb_typeof(value) <> 'string' OR (value #>> '{}') COLLATE "C" !~ '^([!-~]([ -~]*[!-~])?)?$' THEN
			PERFORM weekwheel.refuse('22023', format('headers has %s as the value of %s, and a value must be a string of '
				'printable ASCII without spaces around it', left(value::text, 100), name),
				'Write a number as a string, and other text in the body.');
		END IF;
		names := names || lower(name COLLATE "C");
		lines := lines || lower(name COLLATE "C") || ': ' || (value #>> '{}') || E'\n';
	END LOOP;
	IF (SELECT count(DISTINCT one) FROM unnest(names) one) < cardinality(names) THEN
		PERFORM weekwheel.refuse('22023', 'headers has a name twice, and each must be there once',
			'Upper and lower case are the same.');
	END IF;
	IF cardinality(names) > 16 OR octet_length(lines) > 4096 THEN
		PERFORM weekwheel.refuse('22023', format('headers has %s names and %s bytes, and must have at most 16 and 4096',
			cardinality(names), octet_length(lines)), 'A name and its value count with 3 bytes more. Put the rest into the body.');
	END IF;
	RETURN nullif(convert_to(lines, 'UTF8'), '');
END $$;

-- When a job is due. clock_timestamp(), because now() is when the transaction began.
CREATE OR REPLACE FUNCTION weekwheel.due(delay interval, at timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	IF delay IS NOT NULL AND at IS NOT NULL THEN
		PERFORM weekwheel.refuse('22023', 'delay and at exclude each other', 'Leave one out.');
	END IF;
	IF at < '1970-01-01Z' OR at > '2116-02-20Z' THEN
		PERFORM weekwheel.refuse('22008', format('at is %s, and must be 1970-01-01 to 2116-02-20', at),
			'A time that has passed is now. To put no job yet, put it later.');
	END IF;
	IF at IS NOT NULL OR delay IS NULL THEN
		RETURN coalesce(at, clock_timestamp());
	END IF;
	IF delay > '4611686018 seconds'::interval - extract(epoch FROM clock_timestamp()) * '1 second'::interval THEN
		PERFORM weekwheel.refuse('22008', format('delay is %s, and the job would be due after 2116-02-20', delay),
			'Give an interval, such as delay => ''5 minutes''.');
	END IF;
	PERFORM weekwheel.span('delay', delay, '0');
	RETURN clock_timestamp() + make_interval(secs => date_part('epoch', delay));
END $$;

-- Later by a part of a span that the tube and a name fix: the one that ww_job_spread adds (lib/base/spread.h). A bigint does
-- not wrap around, so the hash is in halves of 32 bits; its factor is 2^40 + 435.
CREATE OR REPLACE FUNCTION weekwheel.spread(due timestamptz, spread interval, tube text, name bytea) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
	parts bigint := coalesce(weekwheel.span('spread', spread, '0'), 0) / 1000000;
	bytes bytea := CASE WHEN parts > 0 THEN convert_to(tube, 'UTF8') || '\x00' || name ELSE '' END;
	high bigint := 3421674724;
	low bigint := 2216829733;
	hash numeric;
	later timestamptz;
BEGIN
	IF parts = 0 THEN
		RETURN due;
	END IF;
	FOR i IN 0..octet_length(bytes) - 1 LOOP
		low := low # get_byte(bytes, i);
		high := (high * 435 + (low * 435 >> 32) + (low << 8)) & 4294967295;
		low := low * 435 & 4294967295;
	END LOOP;
	hash := (high * 4294967296::numeric + (low # high)) * 15485907386658061715 % 18446744073709551616;
	high := div(hash, 4294967296);
	low := (hash % 4294967296)::bigint # high;
	later := due + (high * 4294967296::numeric + low) % parts * interval '1 millisecond';
	IF later > '2116-02-20Z' THEN
		PERFORM weekwheel.refuse('22008', format('spread is %s, and the job would be due after 2116-02-20', spread),
			'Give an interval, such as spread => ''5 minutes''.');
	END IF;
	RETURN later;
END $$;

-- ---- Rights

-- The role that acts: that of SET ROLE, or of the login. Both are PostgreSQL's to check, and the caller cannot make them
-- up. In a function of somebody's that is itself SECURITY DEFINER it is still the role of the session.
--
-- A right to all tubes is the privilege to call this function, which PostgreSQL finds sooner than a row of `rights`.
CREATE OR REPLACE FUNCTION weekwheel.all_tubes() RETURNS void LANGUAGE sql AS '';

-- Whether it may use the tube; tube NULL: each. Rights are inherited, as those that GRANT gives. It has no SET search_path.
CREATE OR REPLACE FUNCTION weekwheel.has_right(wanted text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	who pg_catalog.name := CASE WHEN pg_catalog.current_setting('role') OPERATOR(pg_catalog.=) 'none' THEN session_user
		ELSE pg_catalog.current_setting('role') END;
BEGIN
	RETURN pg_catalog.has_function_privilege(who, 'weekwheel.all_tubes()'::pg_catalog.regprocedure, 'EXECUTE') OR EXISTS (
		SELECT FROM weekwheel.rights WHERE tube OPERATOR(pg_catalog.=) wanted AND pg_catalog.pg_has_role(who, role, 'USAGE'));
END $$;

CREATE OR REPLACE FUNCTION weekwheel.demand(wanted text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	who name := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
BEGIN
	IF NOT weekwheel.has_right(wanted) THEN
		PERFORM weekwheel.refuse('42501', format('role %I has no right to %s', who,
			coalesce('the tube ' || quote_literal(wanted), 'all tubes')),
			format('The owner of the schema grants it: SELECT weekwheel.allow(%L, %L)', who, coalesce(wanted, '*')) ||
			CASE WHEN wanted IS NULL THEN '. A job by its id may be in any tube; name it by tube and key.' ELSE '' END);
	END IF;
END $$;

-- ---- What a job is

-- What put was given beside tube, body and delay.
CREATE OR REPLACE FUNCTION weekwheel.spec(at timestamptz, priority bigint, run interval, every interval, missed text,
	skip interval, attempts bigint, backoff interval, backoff_max interval, key bytea, mode text, debounce interval,
	is_unique interval, "group" bytea, keep interval, expire interval, expired text, headers jsonb) RETURNS weekwheel.options LANGUAGE plpgsql AS $$
DECLARE
	job weekwheel.options;
BEGIN
	IF at IS NOT NULL THEN
		job.wall := true;
	END IF;
	job.key := key;
	job."group" := "group";
	job.headers := weekwheel.lines_of(headers);
	IF priority IS NOT NULL THEN
		job.priority := weekwheel.count('priority', priority);
	END IF;
	IF attempts IS NOT NULL THEN
		job.attempts := weekwheel.count('attempts', attempts);
	END IF;
	IF num_nonnulls(run, every, missed, skip, backoff, backoff_max, keep, mode, debounce, is_unique, expire, expired) = 0 THEN
		RETURN job;
	END IF;
	job.run := weekwheel.span('run', run, '1 second');
	IF every <> '0' THEN
		job.period := weekwheel.span('every', every, '1 millisecond');
	END IF;
	job.missed := array_position('{once,all,skip}', missed) - 1;
	IF job.missed IS NULL AND missed IS NOT NULL THEN
		PERFORM weekwheel.refuse('22023', format('missed is %L, and must be ''once'', ''all'' or ''skip''', missed),
			'It says what becomes of times that passed while no server worked.');
	END IF;
	job.skip := weekwheel.span('skip', skip, '0');
	job.backoff := weekwheel.span('backoff', backoff, '0');
	job.backoff_max := weekwheel.span('backoff_max', backoff_max, '0');
	job.keep := weekwheel.span('keep', keep, '0');
	job.expire := weekwheel.span('expire', expire, '0');
	job.expired := array_position('{drop,bury}', expired) - 1;
	IF job.expired IS NULL AND expired IS NOT NULL THEN
		PERFORM weekwheel.refuse('22023', format('expired is %L, and must be ''drop'' or ''bury''', expired),
			'It says what becomes of a job that expired.');
	END IF;
	IF expired IS NOT NULL AND coalesce(job.expire, 0) = 0 THEN
		PERFORM weekwheel.refuse('22023', 'expired is given, and expire is not', 'Give a time, such as expire => ''10 minutes''.');
	END IF;
	job.key_mode := array_position('{replace,if-absent,keep-earlier,keep-later}', mode) - 1;
	IF job.key_mode IS NULL AND mode IS NOT NULL THEN
		PERFORM weekwheel.refuse('22023',
			format('mode is %L, and must be ''replace'', ''if-absent'', ''keep-earlier'' or ''keep-later''', mode),
			'It says what happens if the tube has a job of the same key.');
	END IF;
	IF num_nonnulls(mode, debounce, is_unique) > 1 THEN
		PERFORM weekwheel.refuse('22023', 'mode, debounce and unique exclude each other',
			'Each says what happens if the tube has a job of the same key.');
	END IF;
	IF debounce IS NOT NULL THEN
		job.key_mode := 4;
		job.key_span := weekwheel.span('debounce', debounce, '1 millisecond');
	ELSIF is_unique IS NOT NULL THEN
		job.key_mode := 5;
		job.key_span := weekwheel.span('unique', is_unique, '1 millisecond');
	END IF;
	IF job.key_mode > 0 AND key IS NULL THEN
		PERFORM weekwheel.refuse('22023', format('%s is given, and there is no key',
			CASE job.key_mode WHEN 4 THEN 'debounce' WHEN 5 THEN 'unique' ELSE 'mode' END),
			'Give a key, such as key => ''order-7''.');
	END IF;
	IF job.key_span IS NOT NULL AND job.period IS NOT NULL THEN
		PERFORM weekwheel.refuse('22023', format('%s and every exclude each other',
			CASE job.key_mode WHEN 4 THEN 'debounce' ELSE 'unique' END), 'Leave one out.');
	END IF;
	RETURN job;
END $$;

-- ---- The follow-up of a job, in JSON as weekwheeld takes it, and in bytes as ww_job_then_write writes them (lib/jobs/then.h)

-- A member with its tag and its length; nothing if it is null.
CREATE OR REPLACE FUNCTION weekwheel.tagged(tag int, value bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	head bytea := set_byte('\x00', 0, tag);
	length int := octet_length(value);
BEGIN
	IF value IS NULL THEN
		RETURN '';
	END IF;
	WHILE length >= 128 LOOP
		head := head || set_byte('\x00', 0, length & 127 | 128);
		length := length >> 7;
	END LOOP;
	RETURN head || set_byte('\x00', 0, length) || value;
END $$;

-- A length of time: a number of seconds, or a text.
CREATE OR REPLACE FUNCTION weekwheel.span_in(job jsonb, name text) RETURNS interval LANGUAGE sql IMMUTABLE AS
	$$SELECT CASE jsonb_typeof(job -> name) WHEN 'number' THEN make_interval(secs => (job ->> name)::float8) ELSE (job ->> name)::interval END$$;

CREATE OR REPLACE FUNCTION weekwheel.bytes_in(job jsonb, name text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
	$$SELECT coalesce(convert_to(job ->> name, 'UTF8'), decode(job ->> (name || '_base64'), 'base64'))$$;

-- `key` is that of a unique job before it, which keeps it.
CREATE OR REPLACE FUNCTION weekwheel.follow_up(job jsonb, before text, key bytea, every interval) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
	said weekwheel.options;
	name text;
	tube text;
	own bytea;
BEGIN
	IF job IS NULL OR job = 'null' THEN
		RETURN NULL;
	END IF;
	IF jsonb_typeof(job) <> 'object' OR job #> array_fill('then'::text, '{16}') IS NOT NULL THEN
		PERFORM weekwheel.refuse('22023', 'then is no object, or one with more than 16 jobs in a row',
			'Give such as "then" => ''{"tube": "mail", "body": "done"}''.');
	END IF;
	IF every <> '0' THEN
		PERFORM weekwheel.refuse('22023', 'every and then exclude each other', 'A job that repeats has no end that another could follow.');
	END IF;
	FOR name IN SELECT jsonb_object_keys(job) LOOP
		IF name <> ALL ('{tube,key,key_base64,group,group_base64,headers,then,priority,delay,at,run,every,missed,skip,attempts,
				backoff,backoff_max,keep,expire,expired,mode,debounce,unique,body,body_base64}'::text[]) THEN
			PERFORM weekwheel.refuse('22023', format('then has the member %L, which no put takes', left(name, 100)),
				'It has those of POST /v1/jobs, without spread: see weekwheeld(1).');
		END IF;
	END LOOP;
	tube := coalesce(job ->> 'tube', 'default');
	PERFORM weekwheel.demand(tube), weekwheel.check_tube(tube);
	own := weekwheel.bytes('key', NULL, weekwheel.bytes_in(job, 'key'));
	IF tube = before AND own = key THEN
		PERFORM weekwheel.refuse('22023', 'then has the key of the job before it, which is unique and keeps it', 'Give it another key or tube.');
	END IF;
	said := weekwheel.spec((job ->> 'at')::timestamptz, (job ->> 'priority')::bigint, weekwheel.span_in(job, 'run'),
		weekwheel.span_in(job, 'every'), job ->> 'missed', weekwheel.span_in(job, 'skip'), (job ->> 'attempts')::bigint,
		weekwheel.span_in(job, 'backoff'), weekwheel.span_in(job, 'backoff_max'), own, job ->> 'mode',
		weekwheel.span_in(job, 'debounce'), weekwheel.span_in(job, 'unique'),
		weekwheel.bytes('group', NULL, weekwheel.bytes_in(job, 'group')), weekwheel.span_in(job, 'keep'),
		weekwheel.span_in(job, 'expire'), job ->> 'expired', job -> 'headers');
	PERFORM weekwheel.due(weekwheel.span_in(job, 'delay'), (job ->> 'at')::timestamptz);
	RETURN weekwheel.tagged(1, convert_to(tube, 'UTF8') || '\x00') || weekwheel.tagged(2, own) || weekwheel.tagged(3, said."group") ||
		weekwheel.tagged(4, weekwheel.bytes_in(job, 'body')) || weekwheel.tagged(5, said.headers) ||
		weekwheel.tagged(6, weekwheel.follow_up(job -> 'then', tube, CASE said.key_mode WHEN 5 THEN own END, weekwheel.span_in(job, 'every'))) ||
		weekwheel.tagged(7, int8send(coalesce(weekwheel.span('delay', weekwheel.span_in(job, 'delay'), '0'),
			(extract(epoch FROM (job ->> 'at')::timestamptz) * 1000000000)::bigint))) ||
		weekwheel.tagged(8, int8send(said.run)) || weekwheel.tagged(9, int8send(said.period)) || weekwheel.tagged(10, int8send(said.skip)) ||
		weekwheel.tagged(11, int8send(said.backoff)) || weekwheel.tagged(12, int8send(said.backoff_max)) ||
		weekwheel.tagged(13, int8send(said.keep)) || weekwheel.tagged(14, int8send(said.expire)) ||
		weekwheel.tagged(15, int8send(said.key_span)) || weekwheel.tagged(16, int8send(said.priority)) ||
		weekwheel.tagged(17, int8send(said.attempts)) || weekwheel.tagged(18, CASE WHEN said.wall THEN '\x03'::bytea END) ||
		weekwheel.tagged(19, int2send(said.missed)) || weekwheel.tagged(20, int2send(said.expired)) ||
		weekwheel.tagged(21, int2send(said.key_mode));
END $$;

-- The owner sleeps as long as it holds this lock alone, and then has to be woken; otherwise it looks by itself. Who holds it
-- shared keeps the owner from falling asleep until the row has been committed. A transaction that will be PREPAREd may not notify:
-- with SET weekwheel.wakes = off it does not, and the owner finds the row within a second.
CREATE OR REPLACE FUNCTION weekwheel.notify() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(current_setting('weekwheel.wakes', true), 'on') <> 'off' THEN
		PERFORM pg_notify('weekwheel', '');
	END IF;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.wake() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF NOT pg_try_advisory_xact_lock_shared(1463900017, 2) THEN
		PERFORM weekwheel.notify();
	END IF;
END $$;

-- ---- put and put_many, for bodies of text, bytes and JSON

-- A put that is not usual.
CREATE OR REPLACE FUNCTION weekwheel.put_other(part int, number bigint, tube text, body bytea, delay interval, at timestamptz,
	priority bigint, run interval, every interval, missed text, skip interval, attempts bigint, backoff interval,
	backoff_max interval, key text, key_bytes bytea, mode text, debounce interval, "unique" interval, "group" text,
	group_bytes bytea, keep interval, expire interval, expired text, headers jsonb, spread interval, "then" jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	key_given bytea := weekwheel.bytes('key', key, key_bytes);
	job weekwheel.options;
BEGIN
	PERFORM weekwheel.demand(tube);
	PERFORM weekwheel.check_tube(tube);
	PERFORM weekwheel.check_body(body);
	job := weekwheel.spec(at, priority, run, every, missed, skip, attempts, backoff, backoff_max, key_given, mode, debounce, "unique",
		weekwheel.bytes('group', "group", group_bytes), keep, expire, expired, headers);
	job."then" := weekwheel.follow_up("then", tube, CASE job.key_mode WHEN 5 THEN job.key END, every);
	INSERT INTO weekwheel.inbox (ring, verb, id, due, tube, options, body) VALUES (part, 0, number,
		weekwheel.spread(weekwheel.due(delay, at), spread, tube, coalesce(key_given, body)), tube, job, body);
	PERFORM weekwheel.wake();
END $$;

DO $generate$
DECLARE
	kind record;
	sql text;
	-- To find the part of a partitioned table would take longer.
	branches text := (SELECT string_agg(format($$%s part OPERATOR(pg_catalog.=) %s THEN
			INSERT INTO weekwheel.inbox_%s (ring, verb, id, due, tube, body) VALUES (%s, 0, number,
				CASE WHEN delay IS NULL THEN pg_catalog.clock_timestamp() ELSE pg_catalog.clock_timestamp()
					OPERATOR(pg_catalog.+) pg_catalog.make_interval(secs => pg_catalog.date_part('epoch', delay)) END,
				tube, bytes) RETURNING pg_catalog.pg_try_advisory_xact_lock_shared(1463900017, 2) INTO is_awake$$,
		CASE part WHEN 0 THEN 'IF' ELSE 'ELSIF' END, part, part, part), ';') || '; END IF;' FROM generate_series(0, 3) part);
BEGIN
	FOR kind IN SELECT * FROM (VALUES ('text', $$pg_catalog.convert_to(body, 'UTF8')$$), ('bytea', 'body'),
			('jsonb', $$pg_catalog.convert_to(body::pg_catalog.text, 'UTF8')$$)) AS kinds(type, bytes) LOOP
		FOREACH sql IN ARRAY ARRAY[$sql$
CREATE OR REPLACE FUNCTION weekwheel.put(tube text, body @type@, delay interval DEFAULT NULL, at timestamptz DEFAULT NULL,
	priority bigint DEFAULT NULL, run interval DEFAULT NULL, every interval DEFAULT NULL, missed text DEFAULT NULL,
	skip interval DEFAULT NULL, attempts bigint DEFAULT NULL, backoff interval DEFAULT NULL,
	backoff_max interval DEFAULT NULL, key text DEFAULT NULL, key_bytes bytea DEFAULT NULL, mode text DEFAULT NULL,
	debounce interval DEFAULT NULL, "unique" interval DEFAULT NULL, "group" text DEFAULT NULL,
	group_bytes bytea DEFAULT NULL, keep interval DEFAULT NULL, expire interval DEFAULT NULL, expired text DEFAULT NULL,
	headers jsonb DEFAULT NULL, spread interval DEFAULT NULL, "then" jsonb DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $put$
DECLARE
	part int := COALESCE(pg_catalog.pg_sequence_last_value('weekwheel.current'), 0) OPERATOR(pg_catalog.%) 4;
	number bigint := 2 OPERATOR(pg_catalog.*) pg_catalog.nextval('weekwheel.ids') OPERATOR(pg_catalog.+) 1;
	bytes pg_catalog.bytea := @bytes@;
	is_awake boolean;
BEGIN
	-- Each expression costs something in each transaction: one has all that most puts need.
	IF (pg_catalog.has_function_privilege(CASE WHEN pg_catalog.current_setting('role') OPERATOR(pg_catalog.=) 'none'
				THEN session_user ELSE pg_catalog.current_setting('role')::pg_catalog.name END,
				'weekwheel.all_tubes()'::pg_catalog.regprocedure, 'EXECUTE') OR weekwheel.has_right(tube)) AND
			pg_catalog.num_nonnulls(at, priority, run, every, missed, skip, attempts, backoff, backoff_max, key, key_bytes,
				mode, debounce, "unique", "group", group_bytes, keep, expire, expired, headers, spread, "then")
				OPERATOR(pg_catalog.=) 0 AND
			(delay IS NULL OR delay OPERATOR(pg_catalog.>=) '0' AND delay OPERATOR(pg_catalog.<=) '10 years') AND
			pg_catalog.octet_length(bytes) OPERATOR(pg_catalog.<=) 268435456 AND
			pg_catalog.octet_length(tube) OPERATOR(pg_catalog.<=) 200 AND tube OPERATOR(pg_catalog.~)
				'^[A-Za-z0-9+/;.$_()][-A-Za-z0-9+/;.$_()]*$' COLLATE pg_catalog."C" THEN
		@insert@
		IF NOT is_awake THEN
			PERFORM weekwheel.notify();
		END IF;
	ELSE
		PERFORM weekwheel.put_other(part, number, tube, bytes, delay, at, priority, run, every, missed, skip, attempts,
			backoff, backoff_max, key, key_bytes, mode, debounce, "unique", "group", group_bytes, keep, expire, expired, headers,
			spread, "then");
	END IF;
	RETURN number;
END $put$
$sql$, $sql$
CREATE OR REPLACE FUNCTION weekwheel.put_many(tube text, bodies @type@[], delay interval DEFAULT NULL,
	at timestamptz DEFAULT NULL, priority bigint DEFAULT NULL, run interval DEFAULT NULL, every interval DEFAULT NULL,
	missed text DEFAULT NULL, skip interval DEFAULT NULL, attempts bigint DEFAULT NULL, backoff interval DEFAULT NULL,
	backoff_max interval DEFAULT NULL, keys text[] DEFAULT NULL, mode text DEFAULT NULL, debounce interval DEFAULT NULL,
	"unique" interval DEFAULT NULL, "group" text DEFAULT NULL, group_bytes bytea DEFAULT NULL, keep interval DEFAULT NULL,
	expire interval DEFAULT NULL, expired text DEFAULT NULL, headers jsonb DEFAULT NULL, spread interval DEFAULT NULL,
	"then" jsonb DEFAULT NULL)
RETURNS SETOF bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $put$
DECLARE
	part int := coalesce(pg_sequence_last_value('weekwheel.current'), 0) % 4;
	time timestamptz := clock_timestamp();
	job weekwheel.options;
	bytes bytea[];
	numbers bigint[];
BEGIN
	PERFORM weekwheel.check_tube(tube);
	PERFORM weekwheel.demand(tube);
	IF bodies IS NULL OR array_position(bodies, NULL) > 0 THEN
		PERFORM weekwheel.check_body(NULL);
	END IF;
	IF keys IS NOT NULL THEN
		IF cardinality(keys) <> cardinality(bodies) THEN
			PERFORM weekwheel.refuse('22023', format('keys has %s members, and bodies has %s', cardinality(keys),
				cardinality(bodies)), 'Each job has a key in keys, or null.');
		END IF;
		PERFORM weekwheel.bytes('key', one, NULL) FROM unnest(keys) one WHERE one IS NOT NULL;
	END IF;
	IF num_nonnulls(delay, at, priority, run, every, missed, skip, attempts, backoff, backoff_max, mode, debounce, "unique",
			"group", group_bytes, keep, expire, expired, headers, "then") > 0 THEN
		time := weekwheel.due(delay, at);
		job := weekwheel.spec(at, priority, run, every, missed, skip, attempts, backoff, backoff_max,
			CASE WHEN array_position(keys, NULL) IS NULL AND keys IS NOT NULL THEN ''::bytea END, mode, debounce, "unique",
			weekwheel.bytes('group', "group", group_bytes), keep, expire, expired, headers);
		job."then" := weekwheel.follow_up("then", tube,
			CASE WHEN "unique" IS NOT NULL AND "then" ->> 'key' = ANY (keys) THEN convert_to("then" ->> 'key', 'UTF8') END, every);
	END IF;
	bytes := ARRAY(SELECT @bytes@ FROM unnest(bodies) body);
	numbers := ARRAY(SELECT 2 * nextval('weekwheel.ids') + 1 FROM generate_series(1, cardinality(bytes)));
	-- Jobs that differ only in their bodies are a row, of some hundreds and some megabytes at most: they cost little then.
	IF keys IS NULL AND spread IS NULL AND pg_column_size(bytes) <= 16777216 THEN
		FOR low IN 1..cardinality(numbers) BY 500 LOOP
			job.ids := numbers[low:low + 499];
			INSERT INTO weekwheel.inbox (ring, verb, id, due, tube, options, body) VALUES (part, 0, numbers[low], time, tube,
				job, array_send(bytes[low:low + 499]));
		END LOOP;
	ELSE
		INSERT INTO weekwheel.inbox (ring, verb, id, due, tube, options, body)
			SELECT part, 0, number, CASE WHEN spread IS NULL THEN time
					ELSE weekwheel.spread(time, spread, tube, coalesce(convert_to(given.key, 'UTF8'), given.body)) END, tube, (NULL, NULL, job.wall, convert_to(given.key, 'UTF8'), job.priority, job.run,
				job.period, job.missed, job.skip, job.backoff, job.backoff_max, job.attempts, job.key_mode, job.key_span,
				job.keep, job."group", NULL, job.expire, job.expired, job.headers, job."then")::weekwheel.options, given.body
			FROM unnest(numbers, bytes, keys) AS given (number, body, key);
	END IF;
	PERFORM weekwheel.wake();
	RETURN QUERY SELECT unnest(numbers);
END $put$
$sql$] LOOP
			EXECUTE replace(replace(replace(sql, '@insert@', branches), '@type@', kind.type), '@bytes@', kind.bytes);
		END LOOP;
	END LOOP;
END $generate$;

-- ---- cancel and move: requests that the owner carries out after the commit. Whether there was such a job, and whether a
-- worker has it, is not known in the transaction.

CREATE OR REPLACE FUNCTION weekwheel.request(verb int, job bigint, tube text, key bytea, due timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	options weekwheel.options;
BEGIN
	IF job IS NULL THEN
		PERFORM weekwheel.check_tube(tube);
		IF key IS NULL THEN
			PERFORM weekwheel.refuse('22004', 'key is null', 'Name a job by its id, or by its tube and key.');
		END IF;
	ELSIF job < 1 THEN
		PERFORM weekwheel.refuse('22003', format('id is %s, and must be at least 1', job), 'put returns the id of a job.');
	END IF;
	PERFORM weekwheel.demand(tube);
	options.job := job;
	options.key := key;
	INSERT INTO weekwheel.inbox (ring, verb, id, due, tube, options) VALUES (
		coalesce(pg_sequence_last_value('weekwheel.current'), 0) % 4, verb, 2 * nextval('weekwheel.ids') + 1, due, tube, options);
	PERFORM weekwheel.wake();
END $$;

CREATE OR REPLACE FUNCTION weekwheel.request_id(id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	IF id IS NULL THEN
		PERFORM weekwheel.refuse('22004', 'id is null', 'Name a job by its id, or by its tube and key.');
	END IF;
	RETURN id;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.request_due(delay interval, at timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	IF num_nonnulls(delay, at) = 0 THEN
		PERFORM weekwheel.refuse('22004', 'neither delay nor at is given', 'delay => ''0'' makes a job due now.');
	END IF;
	RETURN weekwheel.due(delay, at);
END $$;

CREATE OR REPLACE FUNCTION weekwheel.cancel(id bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	'SELECT weekwheel.request(1, weekwheel.request_id(id), NULL, NULL, NULL)';

CREATE OR REPLACE FUNCTION weekwheel.cancel(tube text, key text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	'SELECT weekwheel.request(1, NULL, tube, weekwheel.bytes(''key'', key, NULL), NULL)';

CREATE OR REPLACE FUNCTION weekwheel.cancel(tube text, key bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	'SELECT weekwheel.request(1, NULL, tube, weekwheel.bytes(''key'', NULL, key), NULL)';

-- `at` comes first here: PostgreSQL could not choose between two moves of three texts otherwise.
CREATE OR REPLACE FUNCTION weekwheel.move(id bigint, at timestamptz DEFAULT NULL, delay interval DEFAULT NULL) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	'SELECT weekwheel.request(2, weekwheel.request_id(id), NULL, NULL, weekwheel.request_due(delay, at))';

CREATE OR REPLACE FUNCTION weekwheel.move(tube text, key text, delay interval DEFAULT NULL, at timestamptz DEFAULT NULL)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	'SELECT weekwheel.request(2, NULL, tube, weekwheel.bytes(''key'', key, NULL), weekwheel.request_due(delay, at))';

CREATE OR REPLACE FUNCTION weekwheel.move(tube text, key bytea, delay interval DEFAULT NULL, at timestamptz DEFAULT NULL)
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	'SELECT weekwheel.request(2, NULL, tube, weekwheel.bytes(''key'', NULL, key), weekwheel.request_due(delay, at))';

-- ---- Rights: only the owner of the schema and roles granted these two functions may call them

-- Give a role the privileges that its rows of `rights` call for, and take those that they do not.
CREATE OR REPLACE FUNCTION weekwheel.grant_to(role regrole) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	tubes text[] := ARRAY(SELECT tube FROM weekwheel.rights WHERE rights.role = grant_to.role);
	privilege text;
	may boolean;
BEGIN
	FOR privilege, may IN
		SELECT 'EXECUTE ON FUNCTION ' || oid::regprocedure, CASE proname WHEN 'all_tubes' THEN '*' = ANY (tubes) ELSE tubes <> '{}' END
			FROM pg_proc WHERE pronamespace = 'weekwheel'::regnamespace
			AND proname IN ('put', 'put_many', 'cancel', 'move', 'finish', 'finish_and_put', 'release', 'bury',
				'put_schedule', 'remove_schedule', 'read_jobs', 'read_runs', 'all_tubes')
		UNION ALL SELECT format('SELECT ON weekwheel.%s', view), tubes <> '{}' FROM unnest('{jobs,buried,tubes,runs,puts}'::text[]) view
		UNION ALL SELECT 'INSERT ON weekwheel.puts', tubes <> '{}'
		UNION ALL SELECT 'USAGE ON SCHEMA weekwheel', tubes <> '{}' LOOP
		EXECUTE CASE WHEN may THEN format('GRANT %s TO %s', privilege, role) ELSE format('REVOKE %s FROM %s', privilege, role) END;
	END LOOP;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.check_right(role name, tube text) RETURNS regrole LANGUAGE plpgsql AS $$
DECLARE
	oid oid := (SELECT pg_roles.oid FROM pg_roles WHERE rolname = role);
BEGIN
	IF oid IS NULL THEN
		PERFORM weekwheel.refuse('42704', format('role is %L, and there is no such role', role), 'CREATE ROLE makes one.');
	END IF;
	IF tube IS DISTINCT FROM '*' THEN
		PERFORM weekwheel.check_tube(tube);
	END IF;
	RETURN oid;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.allow(role name, tube text DEFAULT '*') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	INSERT INTO weekwheel.rights VALUES (weekwheel.check_right(role, tube), tube) ON CONFLICT DO NOTHING;
	PERFORM weekwheel.grant_to(weekwheel.check_right(role, tube));
END $$;

CREATE OR REPLACE FUNCTION weekwheel.forbid(role name, tube text DEFAULT '*') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM weekwheel.rights WHERE rights.role = weekwheel.check_right(forbid.role, forbid.tube)
		AND (forbid.tube = '*' OR rights.tube = forbid.tube);
	PERFORM weekwheel.grant_to(weekwheel.check_right(forbid.role, forbid.tube));
END $$;

-- PostgreSQL lets everybody call a new function, and ALTER DEFAULT PRIVILEGES may have named others.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weekwheel FROM PUBLIC;
DO $$
DECLARE
	function regprocedure;
	other regrole;
BEGIN
	FOR function, other IN SELECT DISTINCT pg_proc.oid, grantee FROM pg_proc, aclexplode(proacl)
		WHERE pronamespace = 'weekwheel'::regnamespace AND grantee NOT IN (0, proowner)
		AND (proname NOT IN ('allow', 'forbid') OR current_setting('weekwheel.is_new')::boolean) LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s CASCADE', function, other);
	END LOOP;
	-- Functions that this version has and the one before had not.
	PERFORM weekwheel.grant_to(role) FROM (SELECT DISTINCT role FROM weekwheel.rights) roles
		WHERE role IN (SELECT oid FROM pg_roles);
END $$;
