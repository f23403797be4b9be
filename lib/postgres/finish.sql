-- Ends of deliveries by SQL, which weekwheel-postgres(7) describes. Setup runs this before functions.sql; it may be repeated.
--
-- A delivery ends once: by the row of its token in `ended`. A transaction that finishes a job adds that row. So does the owner,
-- before it delivers a job again whose lease ended otherwise: the earlier delivery then has no finish left. Whoever comes second
-- waits for the first, and fails if that commits.
--
-- Tokens below the floor are refused. A new owner moves the floor above the tokens of all before it, since it does not know what
-- they delivered; and rows below the floor are dispensable, so that a part of `ended` can be emptied by TRUNCATE. A transaction
-- looks at the floor again when it commits, under a lock that a new owner takes alone after it has moved the floor: then none
-- that saw the old floor is under way.
--
-- A crash of PostgreSQL, or the failover to a standby, may lose the owner's last rows, and ends the owner. It also empties
-- `opened`. Until the next owner has moved the floor, and then set it, no delivery can be ended.
DO $$
DECLARE
	former regprocedure;
BEGIN
	-- Of an earlier version. A function with more arguments is another one, and a call would fit both.
	IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'weekwheel.options'::regclass AND attname = 'headers') THEN
		ALTER TYPE weekwheel.options ADD ATTRIBUTE expire bigint, ADD ATTRIBUTE expired smallint, ADD ATTRIBUTE headers bytea;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'weekwheel.options'::regclass AND attname = 'then') THEN
		ALTER TYPE weekwheel.options ADD ATTRIBUTE "then" bytea;
	END IF;
	FOR former IN SELECT oid FROM pg_proc WHERE pronamespace = 'weekwheel'::regnamespace
			AND proname IN ('put', 'put_other', 'put_many', 'spec', 'finish_and_put', 'put_schedule')
			AND NOT CASE WHEN proname IN ('spec', 'put_schedule') THEN 'expired' ELSE 'then' END = ANY (proargnames) LOOP
		EXECUTE format('DROP FUNCTION %s', former);
	END LOOP;
END $$;

DO $$
BEGIN
	IF to_regclass('weekwheel.ended') IS NOT NULL THEN
		RETURN;
	END IF;
	CREATE SEQUENCE weekwheel.floor MINVALUE 0;       -- no lesser token counts; a sequence, as snapshots do not hide its value
	CREATE UNLOGGED SEQUENCE weekwheel.opened;        -- has no value after a crash or a failover: no owner has moved the floor since
	CREATE TABLE weekwheel.ended (
		part smallint NOT NULL,       -- of four, by ranges of 2^18 tokens
		job bigint NOT NULL,
		token bigint NOT NULL,
		by_owner boolean NOT NULL,
		UNIQUE (part, token, job)
	) PARTITION BY LIST (part);
	FOR i IN 0..3 LOOP
		EXECUTE format('CREATE TABLE weekwheel.ended_%s PARTITION OF weekwheel.ended FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', i, i);
	END LOOP;
END $$;

CREATE OR REPLACE FUNCTION weekwheel.part_of(token bigint) RETURNS smallint LANGUAGE sql IMMUTABLE AS
	'SELECT (token >> 18 & 3)::smallint';

CREATE OR REPLACE FUNCTION weekwheel.too_late(job bigint, token bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM weekwheel.refuse('WW001', format('the delivery of job %s with token %s has ended', job, token),
		'Roll back: it was ended, its time to run was up, or another server owns the jobs now. If the job still lives it is delivered again.');
END $$;

-- At the commit, or when the transaction is prepared, or when SET CONSTRAINTS says so.
CREATE OR REPLACE FUNCTION weekwheel.check_floor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM pg_advisory_xact_lock_shared(1463900017, 4);
	IF NEW.token < pg_sequence_last_value('weekwheel.floor') THEN
		PERFORM weekwheel.too_late(NEW.job, NEW.token);
	END IF;
	RETURN NULL;
END $$;

DO $$
DECLARE
	part regclass;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'weekwheel.ended'::regclass AND tgname = 'check_floor') THEN
		CREATE CONSTRAINT TRIGGER check_floor AFTER INSERT ON weekwheel.ended DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NOT NEW.by_owner) EXECUTE FUNCTION weekwheel.check_floor();
	END IF;
	-- Under session_replication_role = replica, too.
	FOR part IN SELECT tgrelid::regclass FROM pg_trigger WHERE tgname = 'check_floor' AND tgenabled <> 'A'
		AND tgrelid IN (SELECT relid FROM pg_partition_tree('weekwheel.ended')) LOOP
		EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER check_floor', part);
	END LOOP;
END $$;

-- Claim a delivery, and ask the owner to end it like this. A job's tube is not known here, so it takes the right to all.
CREATE OR REPLACE FUNCTION weekwheel.end_delivery(verb int, id bigint, token bigint, due timestamptz, priority bigint,
	body bytea)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	options weekwheel.options;
BEGIN
	IF id IS NULL OR token IS NULL THEN
		PERFORM weekwheel.refuse('22004', CASE WHEN id IS NULL THEN 'id' ELSE 'token' END || ' is null',
			'A delivery has both: POST /v1/leases and list-delayed id= show them.');
	END IF;
	IF id < 1 OR token < 1 THEN
		PERFORM weekwheel.refuse('22003', format('id is %s, token is %s, and both must be at least 1', id, token),
			'The first argument is the id of the job, the second the token of its delivery.');
	END IF;
	PERFORM weekwheel.demand(NULL);
	-- In this order, as the owner sets them the other way round.
	IF pg_sequence_last_value('weekwheel.opened') IS NULL THEN
		PERFORM weekwheel.refuse('WW001', format('the delivery of job %s with token %s has ended', id, token),
			'Roll back: PostgreSQL was recovered, and no server has opened the jobs since. If the job still lives it is delivered again.');
	END IF;
	IF token < pg_sequence_last_value('weekwheel.floor') THEN
		PERFORM weekwheel.too_late(id, token);
	END IF;
	INSERT INTO weekwheel.ended VALUES (weekwheel.part_of(token), id, token, false) ON CONFLICT DO NOTHING;
	IF NOT FOUND THEN
		PERFORM weekwheel.too_late(id, token);
	END IF;
	options.job := id;
	options.token := token;
	options.priority := priority;
	INSERT INTO weekwheel.inbox (ring, verb, id, due, options, body) VALUES (
		coalesce(pg_sequence_last_value('weekwheel.current'), 0) % 4, verb, 2 * nextval('weekwheel.ids') + 1, due, options, body);
	PERFORM weekwheel.wake();
END $$;

CREATE OR REPLACE FUNCTION weekwheel.finish(id bigint, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM weekwheel.end_delivery(3, id, token, NULL, NULL, NULL);
END $$;

-- Without a delay the owner takes the job's backoff; without a priority the job keeps its own. The owner keeps 255 bytes of an
-- error; here it is cut so that it costs the inbox no more.
CREATE OR REPLACE FUNCTION weekwheel.release(id bigint, token bigint, delay interval DEFAULT NULL, priority bigint DEFAULT NULL,
	error text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM weekwheel.end_delivery(4, id, token, CASE WHEN delay IS NOT NULL THEN weekwheel.due(delay, NULL) END,
		weekwheel.count('priority', priority), convert_to(left(error, 255), 'UTF8'));
END $$;

CREATE OR REPLACE FUNCTION weekwheel.bury(id bigint, token bigint, priority bigint DEFAULT NULL, error text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM weekwheel.end_delivery(5, id, token, NULL, weekwheel.count('priority', priority), convert_to(left(error, 255), 'UTF8'));
END $$;

-- The next step of a job's work: a finish and a put, which has the arguments of put.
DO $generate$
DECLARE
	kind text;
BEGIN
	FOREACH kind IN ARRAY ARRAY['text', 'bytea', 'jsonb'] LOOP
		EXECUTE replace($sql$
CREATE OR REPLACE FUNCTION weekwheel.finish_and_put(id bigint, token bigint, tube text, body @type@, delay interval DEFAULT NULL,
	at timestamptz DEFAULT NULL, priority bigint DEFAULT NULL, run interval DEFAULT NULL, every interval DEFAULT NULL,
	missed text DEFAULT NULL, skip interval DEFAULT NULL, attempts bigint DEFAULT NULL, backoff interval DEFAULT NULL,
	backoff_max interval DEFAULT NULL, key text DEFAULT NULL, key_bytes bytea DEFAULT NULL, mode text DEFAULT NULL,
	debounce interval DEFAULT NULL, "unique" interval DEFAULT NULL, "group" text DEFAULT NULL,
	group_bytes bytea DEFAULT NULL, keep interval DEFAULT NULL, expire interval DEFAULT NULL, expired text DEFAULT NULL,
	headers jsonb DEFAULT NULL, spread interval DEFAULT NULL, "then" jsonb DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $put$
BEGIN
	PERFORM weekwheel.finish(id, token);
	RETURN weekwheel.put(tube, body, delay => delay, at => at, priority => priority, run => run, every => every,
		missed => missed, skip => skip, attempts => attempts, backoff => backoff, backoff_max => backoff_max, key => key,
		key_bytes => key_bytes, mode => mode, debounce => debounce, "unique" => "unique", "group" => "group",
		group_bytes => group_bytes, keep => keep, expire => expire, expired => expired, headers => headers,
		spread => spread, "then" => "then");
END $put$
$sql$, '@type@', kind);
	END LOOP;
END $generate$;

-- The owner's: no finish of this delivery counts from now on. False: one does, or a transaction under way has called it. If this is
-- lost in a crash of PostgreSQL, `opened` is empty, and the next owner moves the floor: it need not wait for the disk.
CREATE OR REPLACE FUNCTION weekwheel.revoke(job bigint, token bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '1', true);
	INSERT INTO weekwheel.ended VALUES (weekwheel.part_of(token), job, token, true) ON CONFLICT DO NOTHING;
	RETURN FOUND OR (SELECT by_owner FROM weekwheel.ended
		WHERE (ended.part, ended.job, ended.token) = (weekwheel.part_of(revoke.token), revoke.job, revoke.token));
EXCEPTION WHEN lock_not_available THEN
	RETURN false;
END $$;
