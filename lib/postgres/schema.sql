-- The store of jobs in PostgreSQL: what "weekwheel postgres setup" makes. Only the owner, one weekwheeld at a time, writes
-- `turn`, `job` and `gone`. Everybody else appends to `inbox`, through the functions.
--
--     put() --> inbox, ring 0..3 --owner: takes what has committed--> turn, ring 0..3 --what lasts--> job, slots 0..168
--                                                                                    \--what ended--> gone, slots 0..168
--
-- No row is ever updated or deleted. The ring's current part is the one that `current` names; the owner empties the oldest
-- part by TRUNCATE when each row in it is taken, and what lives of it has been written on. A slot holds the jobs of an hour
-- of the week (Unix hour mod 168), slot 168 all others; it is emptied when its jobs have ended or were written on.
CREATE SCHEMA weekwheel;

CREATE TABLE weekwheel.about (version int NOT NULL, cluster bigint NOT NULL);
INSERT INTO weekwheel.about SELECT 2, system_identifier FROM pg_control_system();

CREATE SEQUENCE weekwheel.ids;                            -- a job put by SQL has the id 2 * number + 1; the owner's are even
CREATE SEQUENCE weekwheel.current MINVALUE 0;             -- the ring's part that takes rows, modulo 4

-- What a request has beside the usual. NULL: what weekwheeld does by default. Spans are in ns.
CREATE TYPE weekwheel.options AS (
	job bigint,                   -- cancel, move: which job; NULL: that of tube and key
	ids bigint[],                 -- of the jobs whose bodies this row has together
	wall boolean,                 -- put: at a time of the wall clock
	key bytea,
	priority bigint,
	run bigint,
	period bigint,
	missed smallint,              -- enum ww_missed
	skip bigint,
	backoff bigint,
	backoff_max bigint,
	attempts bigint,
	key_mode smallint,            -- enum ww_key_mode
	key_span bigint,
	keep bigint,
	"group" bytea,
	token bigint,                 -- finish, release, bury: of which delivery
	expire bigint,
	expired smallint,             -- enum ww_expired
	headers bytea,                -- as ww_job_headers_add writes them
	"then" bytea                  -- as ww_job_then_write writes it
);

-- What SQL asks of the owner. Rows count when their transaction commits, in no order of ids: the owner reads them by
-- snapshots of `xid`. A row has few columns, and needs 24 bytes for what it is, as each column costs each put.
CREATE TABLE weekwheel.inbox (
	ring smallint NOT NULL,
	verb smallint NOT NULL,       -- 0 put, 1 cancel, 2 move, 3 finish, 4 release, 5 bury
	id bigint NOT NULL,           -- of the job that is put, or of the request
	xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
	due timestamptz DEFAULT clock_timestamp(), -- of the clock of PostgreSQL
	tube text,
	options weekwheel.options,
	body bytea                    -- with ids: all bodies, as array_send(bytea[]) has them
) PARTITION BY LIST (ring);

-- Who may put into a tube, beside the owner of the schema; '*' is each tube.
CREATE TABLE weekwheel.rights (role regrole, tube text, PRIMARY KEY (tube, role));

-- What the owner could not take, and why: rows that were not written by the functions.
CREATE TABLE weekwheel.refused (why text NOT NULL, since timestamptz NOT NULL DEFAULT clock_timestamp(), LIKE weekwheel.inbox);

-- What the owner wrote, a row a turn: pairs as the journal of a local store has them (lib/jobs/store/changes.h).
CREATE TABLE weekwheel.turn (
	ring smallint NOT NULL,
	turn bigint NOT NULL,
	taken bigint[],               -- ids of inbox that this turn took
	changes bytea NOT NULL
) PARTITION BY LIST (ring);

CREATE TABLE weekwheel.job (
	slot smallint NOT NULL,
	id bigint NOT NULL,
	turn bigint NOT NULL,         -- when it was written here
	pair bytea NOT NULL           -- its record, as a change
) PARTITION BY LIST (slot);

-- Jobs that have left a slot, and the turns that they left in: a row of `job` with a lesser turn counts no more.
CREATE TABLE weekwheel.gone (
	slot smallint NOT NULL,
	ids bigint[] NOT NULL,
	turns bigint[] NOT NULL
) PARTITION BY LIST (slot);

ALTER TABLE weekwheel.inbox ALTER body SET STORAGE EXTERNAL;
ALTER TABLE weekwheel.inbox ALTER options SET STORAGE EXTERNAL;
ALTER TABLE weekwheel.turn ALTER changes SET STORAGE EXTERNAL;
ALTER TABLE weekwheel.job ALTER pair SET STORAGE EXTERNAL;
ALTER TABLE weekwheel.gone ALTER ids SET STORAGE EXTERNAL;
ALTER TABLE weekwheel.gone ALTER turns SET STORAGE EXTERNAL;

-- Autovacuum would hold locks that TRUNCATE needs, and finds nothing: no row dies.
DO $$
BEGIN
	FOR i IN 0..3 LOOP
		EXECUTE format('CREATE TABLE weekwheel.inbox_%s PARTITION OF weekwheel.inbox FOR VALUES IN (%s) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)', i, i);
		EXECUTE format('CREATE INDEX ON weekwheel.inbox_%s (xid)', i);
		EXECUTE format('CREATE TABLE weekwheel.turn_%s PARTITION OF weekwheel.turn FOR VALUES IN (%s) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)', i, i);
	END LOOP;
	FOR i IN 0..168 LOOP
		EXECUTE format('CREATE TABLE weekwheel.job_%s PARTITION OF weekwheel.job FOR VALUES IN (%s) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)', i, i);
		EXECUTE format('CREATE TABLE weekwheel.gone_%s PARTITION OF weekwheel.gone FOR VALUES IN (%s) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)', i, i);
	END LOOP;
END $$;
