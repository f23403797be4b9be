-- Schedules by SQL, which weekwheel-postgres(7) describes. Setup runs this before functions.sql; it may be repeated.
--
-- A schedule is a job, which only lib/schedule can make: it reads the calendar. So SQL puts a request beside the schedules, a job
-- that is due at once, and a scheduler carries it out. lib/schedule/record.c has its form.

CREATE OR REPLACE FUNCTION weekwheel.check_schedule(tube text, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM weekwheel.check_tube(tube);
	IF name IS NULL THEN
		PERFORM weekwheel.refuse('22004', 'name is null', 'Name the schedule, such as ''nightly''.');
	END IF;
	IF octet_length(convert_to(name, 'UTF8')) NOT BETWEEN 1 AND least(150, 199 - octet_length(tube)) OR
			name ~ '[\u0001-\u001f\u007f-\u009f]' THEN
		PERFORM weekwheel.refuse('22023', format('name is %L, and must have 1 to %s bytes without control characters',
			left(name, 160), least(150, 199 - octet_length(tube))), 'Name and tube together have at most 199 bytes.');
	END IF;
	PERFORM weekwheel.demand(tube);
END $$;

-- The form of an expression. The server reads what it means: that a range ends before it begins, or no day ever matches.
CREATE OR REPLACE FUNCTION weekwheel.check_cron(cron text, zone text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	fields text[] := regexp_split_to_array(btrim(lower(cron), E' \t'), '[ \t]+');
	few int := 6 - cardinality(fields);
	names text[] := '{second,minute,hour,day of the month,month,day of the week}';
	-- A value, and what a part may be beside a value, a range and *.
	singles text[] := ARRAY['0*[0-5]?[0-9]', '0*[0-5]?[0-9]', '0*(1?[0-9]|2[0-3])', '0*([1-9]|[12][0-9]|3[01])',
		'(0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)', '(0*[0-7]|sun|mon|tue|wed|thu|fri|sat)'];
	others text[] := ARRAY['a^', 'a^', 'a^', '\?(/0*[1-9][0-9]*)?|l(-0*([1-9]|[12][0-9]|30))?', 'a^',
		'\?(/0*[1-9][0-9]*)?|(0*[0-7]|sun|mon|tue|wed|thu|fri|sat)(#0*[1-5]|l)'];
	part text;
BEGIN
	IF cron IS NULL THEN
		PERFORM weekwheel.refuse('22004', 'cron is null', 'Give an expression, such as ''0 3 * * *'' or ''@every 90m''.');
	END IF;
	IF octet_length(cron) > 255 OR NOT (few IN (0, 1) OR
			fields[1] = ANY ('{@hourly,@daily,@midnight,@weekly,@monthly,@yearly,@annually}') AND few = 5 OR
			fields[1] = '@every' AND few = 4 AND btrim(cron) ~ '^\S+\s+(\d+d)?(\d+h)?(\d+m)?(\d+s)?$') THEN
		PERFORM weekwheel.refuse('22023', format('cron is %L, and must be 5 fields, or 6 with the second before them', left(cron, 300)),
			'Give minute, hour, day of the month, month and day of the week, such as ''0 3 * * *''; or ''@daily'', ''@every 90m''.');
	END IF;
	FOR i IN 1 + few..CASE WHEN few < 2 THEN 6 ELSE 0 END LOOP
		FOREACH part IN ARRAY string_to_array(fields[i - few], ',') LOOP
			IF part !~ format('^((\*|%s(-%s)?)(/0*[1-9][0-9]*)?|%s)$', singles[i], singles[i], others[i]) THEN
				PERFORM weekwheel.refuse('22023', format('cron is %L, in which %L is no %s', cron, part, names[i]),
					'See the table of fields in weekwheel_calendar(3).');
			END IF;
		END LOOP;
	END LOOP;
	BEGIN
		PERFORM clock_timestamp() AT TIME ZONE zone;
	EXCEPTION WHEN invalid_parameter_value THEN
		PERFORM weekwheel.refuse('22023', format('zone is %L, and there is no such time zone', left(zone, 260)),
			'Give a name of the IANA database, such as ''Europe/Berlin''.');
	END;
END $$;

-- Unix time in ns.
CREATE OR REPLACE FUNCTION weekwheel.moment(field text, value timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	IF value < '1970-01-01Z' OR value > '2116-02-20Z' THEN
		PERFORM weekwheel.refuse('22008', format('%s is %s, and must be 1970-01-01 to 2116-02-20', field, value),
			'Leave it out, or null, for no bound.');
	END IF;
	RETURN extract(epoch FROM value) * 1000000000;
END $$;

-- A line of a word and a value; none for NULL.
CREATE OR REPLACE FUNCTION weekwheel.line(word text, value anyelement) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$SELECT coalesce(word || ' ' || value || E'\n', '')$$;

CREATE OR REPLACE FUNCTION weekwheel.request_schedule(request text, tube text, name text, lines text, body bytea) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	options weekwheel.options;
BEGIN
	options.run := 5000000000;
	INSERT INTO weekwheel.inbox (ring, verb, id, tube, options, body) VALUES (
		coalesce(pg_sequence_last_value('weekwheel.current'), 0) % 4, 0, 2 * nextval('weekwheel.ids') + 1, '-schedules', options,
		convert_to(format(E'weekwheel-schedule 1\nrequest %s\ntube %s\nname %s\n%s\n', request, tube, name, lines), 'UTF8') || body);
	PERFORM weekwheel.wake();
END $$;

CREATE OR REPLACE FUNCTION weekwheel.remove_schedule(tube text, name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM weekwheel.check_schedule(tube, name);
	PERFORM weekwheel.request_schedule('remove', tube, name, '', '');
END $$;

DO $generate$
DECLARE
	kind record;
BEGIN
	FOR kind IN SELECT * FROM (VALUES ('text', $$convert_to(body, 'UTF8')$$), ('bytea', 'body'),
			('jsonb', $$convert_to(body::text, 'UTF8')$$)) AS kinds(type, bytes) LOOP
		EXECUTE replace(replace($sql$
CREATE OR REPLACE FUNCTION weekwheel.put_schedule(tube text, name text, cron text, body @type@, zone text DEFAULT NULL,
	priority bigint DEFAULT NULL, run interval DEFAULT NULL, missed text DEFAULT NULL, skip interval DEFAULT NULL,
	overlap text DEFAULT NULL, spread interval DEFAULT NULL, start timestamptz DEFAULT NULL, "end" timestamptz DEFAULT NULL,
	attempts bigint DEFAULT NULL, backoff interval DEFAULT NULL, backoff_max interval DEFAULT NULL,
	"group" text DEFAULT NULL, group_bytes bytea DEFAULT NULL, keep interval DEFAULT NULL, paused boolean DEFAULT NULL,
	if_absent boolean DEFAULT NULL, expire interval DEFAULT NULL, expired text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $put$
DECLARE
	job weekwheel.options;
BEGIN
	PERFORM weekwheel.check_schedule(tube, name);
	PERFORM weekwheel.check_body(@bytes@);
	PERFORM weekwheel.check_cron(cron, coalesce(zone, 'UTC'));
	job := weekwheel.spec(NULL, coalesce(priority, 1024), coalesce(run, '60 seconds'), NULL, missed, skip, attempts, backoff,
		coalesce(backoff_max, '1 hour'), NULL, NULL, NULL, NULL, weekwheel.bytes('group', "group", group_bytes), keep,
		expire, expired, NULL);
	IF overlap NOT IN ('allow', 'skip', 'wait') THEN
		PERFORM weekwheel.refuse('22023', format('overlap is %L, and must be ''allow'', ''skip'' or ''wait''', overlap),
			'It says what happens if the job of a former time has not ended.');
	END IF;
	PERFORM weekwheel.request_schedule(CASE WHEN if_absent THEN 'add' ELSE 'put' END, tube, name,
		weekwheel.line('cron', btrim(cron, E' \t')) || weekwheel.line('zone', coalesce(zone, 'UTC')) ||
		weekwheel.line('missed', coalesce(missed, 'once')) || weekwheel.line('overlap', coalesce(overlap, 'allow')) ||
		weekwheel.line('run', job.run) || weekwheel.line('backoff', job.backoff) ||
		weekwheel.line('backoff-max', job.backoff_max) || weekwheel.line('priority', job.priority) ||
		weekwheel.line('keep', job.keep) || weekwheel.line('attempts', job.attempts) || weekwheel.line('skip', job.skip) ||
		weekwheel.line('expire', job.expire) || weekwheel.line('expired', job.expired) ||
		weekwheel.line('spread', weekwheel.span('spread', spread, '0')) ||
		weekwheel.line('start', weekwheel.moment('start', start)) || weekwheel.line('end', weekwheel.moment('end', "end")) ||
		weekwheel.line('paused', paused::int) || weekwheel.line('group', encode(job."group", 'hex')), @bytes@);
END $put$
$sql$, '@type@', kind.type), '@bytes@', kind.bytes);
	END LOOP;
END $generate$;
