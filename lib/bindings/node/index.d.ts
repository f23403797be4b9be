/** Delayed jobs of weekwheeld, and sessions of weekwheel-sessiond. Times are seconds, unless they are a Date. */

export class WeekwheelError extends Error {
	constructor(message: string, code?: string);
	/** The server's own word, such as STALE, or LOST and CLOSED for connections. */
	code?: string;
}
/** The connection failed, or was lost: whether the command was carried out is not known. */
export class ConnectionError extends WeekwheelError {}
/** There is no such job, or another connection has it. */
export class NotFoundError extends WeekwheelError {}
/** The job has another version than the one that was named. */
export class StaleError extends WeekwheelError {}
/** The token does not grant this, or none was said. */
export class DeniedError extends WeekwheelError {}
/** The server takes no more now; later it may. */
export class BusyError extends WeekwheelError {}
/** A time expression or a zone is wrong. */
export class ScheduleError extends WeekwheelError {
	what: 'cron' | 'zone';
	/** The byte where it is wrong. */
	at: number;
}

export interface Connecting {
	/** A token that the server knows (--auth-file), or a password. */
	token?: string;
	/** It reserves only jobs up to this code, or without one. */
	code?: number;
	/** For tls: addresses: what tls.connect() takes, such as `ca`, `cert` and `key`. */
	tls?: { [option: string]: unknown };
	/** How long to wait for the connection, in ms: 10000 by default. */
	timeout?: number;
}

type Body = string | Uint8Array;
/** A job: its id, or its key in the tube. */
type Which = number | string;

export interface Putting {
	/** The smaller, the earlier: 1024 by default. */
	priority?: number;
	/** From now until it is due. */
	delay?: number;
	/** Due at this time of the wall clock instead: a Date, or seconds since 1970. */
	at?: Date | number;
	/** How long a worker may take: 60 by default. A worker touches what takes longer. */
	run?: number;
	/** A name within the tube, up to 200 bytes: a job that has it is replaced, unless `mode` says otherwise. */
	key?: string;
	mode?: 'replace' | 'if-absent' | 'keep-earlier' | 'keep-later';
	/** Replace only this version; 0: put only if there is none. */
	version?: number;
	/** Each put moves the job, at most so long after the first one. */
	debounce?: number;
	/** When the job is done, its key stays taken for so long. */
	unique?: number;
	/** Due a part of this later, which the key fixes, or the body if there is none. */
	spread?: number;
	/** Again so long after each due time, in elapsed time. */
	every?: number;
	missed?: 'once' | 'all' | 'skip';
	skip?: number;
	/** Bury it after so many failures. */
	attempts?: number;
	/** The delay after the first failure; it doubles up to `backoffMax`. */
	backoff?: number;
	backoffMax?: number;
	/** Groups of a tube take turns, and may have limits. */
	group?: string;
	/** Keep for so long how its runs ended. */
	keep?: number;
	/** It expires so long after it is due, unless a worker has it. */
	expire?: number;
	/** What becomes of it then: 'drop' by default. */
	expired?: 'drop' | 'bury';
	/** The version of the code that can do it: clients of a lower code do not get it. */
	code?: number;
	/** Names and values beside the body, such as a tenant or a trace: 16 of visible ASCII, 4096 bytes in all. */
	headers?: { [name: string]: string };
	/** The job to put when this one is finished, in one write with its end, with the members of POST /v1/jobs. */
	then?: { [member: string]: unknown };
}

export interface Put {
	result: 'inserted' | 'replaced' | 'kept' | 'ended' | 'buried';
	id: number;
	/** Of puts with version: 0, mode, debounce or unique. */
	version?: number;
}

export interface ListedJob {
	id: number;
	version: number;
	state: 'delayed' | 'ready' | 'reserved' | 'buried' | 'ended';
	tube: string;
	key: string | null;
	priority: number;
	/** Seconds on its clock. */
	due: string;
	clock: 'elapsed' | 'wall';
	left: number;
	error: string | null;
	length: number;
	body?: Buffer;
	[more: string]: unknown;
}

export interface Schedule {
	name: string;
	tube: string;
	cron: string;
	body?: Buffer;
	[more: string]: unknown;
}

export interface Run {
	id: number;
	tube: string;
	key: string | null;
	outcome: 'finished' | 'released' | 'timed-out' | 'buried' | 'expired';
	attempt: number;
	error: string | null;
	report?: Buffer;
	[more: string]: unknown;
}

export interface Limit {
	tube: string;
	group: string | null;
	each: boolean;
	running: number;
	starts: number;
	[more: string]: unknown;
}

type Stats = { [name: string]: string | number };

/** A job that this process runs. Its connection is nobody else's until it has ended. */
export class Job {
	private constructor();
	readonly id: number;
	readonly tube: string;
	readonly body: Buffer;
	/** What it has beside its body, the names in lower case. */
	readonly headers: { [name: string]: string };
	/** finish, release or bury was called. */
	readonly ended: boolean;
	readonly text: string;
	json(): any;
	/** It is done. */
	finish(): Promise<void>;
	/** It failed: again after its own backoff, or after `delay`. True: that was its last attempt, and it is buried. */
	release(how?: { delay?: number; error?: unknown; priority?: number }): Promise<boolean>;
	/** Put it aside until somebody kicks it. */
	bury(how?: { error?: unknown; priority?: number }): Promise<void>;
	/** Its time to run begins anew. */
	touch(): Promise<void>;
	/** Say something of this run, for the history of a job that was put with `keep`; the last 4096 bytes count. */
	report(said: Body): Promise<void>;
	stat(): Promise<Stats>;
	/** Its own pause after the first failure, in seconds, or 0. */
	retries(): Promise<{ attempts: number; backoff: number }>;
}

export class Worker {
	private constructor();
	/** Resolves when it has stopped; rejects if the server refuses it. */
	readonly done: Promise<void>;
	/** Take no more jobs, and wait for those that run, unless this is called in a job of the same client. */
	stop(): Promise<void>;
}

export class Jobs {
	private constructor();
	/** HOST:PORT, [IPv6]:PORT, tls: and one of these, or unix:PATH; 127.0.0.1:11300 by default. */
	static connect(address?: string, how?: Connecting): Promise<Jobs>;
	put(tube: string, body: Body, how?: Putting): Promise<Put>;
	/** Another delay or due time for a job that waits. Returns its version. */
	move(tube: string, job: Which, how: { delay?: number; at?: Date | number; version?: number }): Promise<number>;
	/** Delete it, whatever its state. False: there is none. */
	cancel(tube: string, key: string, how?: { version?: number }): Promise<boolean>;
	cancel(tube: string, id: number): Promise<boolean>;
	peek(tube: string, job: Which): Promise<{ id: number; body: Buffer } | undefined>;
	stat(tube: string, job: Which): Promise<Stats | undefined>;
	/** Numbers of the server, or of a tube. */
	stats(tube?: string): Promise<Stats>;
	tubes(): Promise<string[]>;
	list(conditions?: { tube?: string; prefix?: string; state?: string | string[]; from?: Date | number; to?: Date | number; body?: boolean }): AsyncIterable<ListedJob>;
	/** How the runs of jobs ended that were put with `keep`, the last one first. */
	history(conditions?: { tube?: string; prefix?: string; id?: number; body?: boolean }): AsyncIterable<Run>;
	/** How many jobs come due in each of the next `count` spans. */
	forecast(span: number, count: number, of?: { tube?: string }): Promise<number[]>;
	pause(tube: string, time: number): Promise<void>;
	/** Make buried jobs ready, or delayed ones if none is buried. Returns how many. */
	kick(tube: string, count?: number): Promise<number>;
	kickJob(id: number): Promise<void>;
	/** Without `running` and `starts`: any number. */
	limit(tube: string, limits?: { running?: number; starts?: number; per?: number; burst?: number; weight?: number; group?: string; each?: boolean }): Promise<void>;
	limits(tube?: string): Promise<Limit[]>;
	/** Put a job at each time of an expression of cron. Returns the next one, if there is one. */
	schedule(tube: string, name: string, body: Body, how: { cron: string; zone?: string; spread?: number; overlap?: 'allow' | 'skip' | 'wait'; start?: Date | number; end?: Date | number; paused?: boolean; mode?: 'if-absent'; priority?: number; run?: number; missed?: 'once' | 'all' | 'skip'; skip?: number; attempts?: number; backoff?: number; backoffMax?: number; group?: string; keep?: number; expire?: number; expired?: 'drop' | 'bury'; code?: number }): Promise<Date | undefined>;
	/** With a name: that one, with its next ten times. */
	schedules(conditions?: { tube?: string; name?: string; body?: boolean }): AsyncIterable<Schedule>;
	deleteSchedule(tube: string, name: string): Promise<void>;
	pauseSchedule(tube: string, name: string): Promise<void>;
	resumeSchedule(tube: string, name: string): Promise<void>;
	/** Put a job of it now. Returns the job's id. */
	runSchedule(tube: string, name: string): Promise<number>;
	/** Move a virtual clock (weekwheeld --clock virtual), for tests. */
	advance(time: number): Promise<Date>;
	/**
	 * Jobs as they become ready. One that the loop has not ended is finished when the next is asked for, and released if the loop
	 * throws or breaks. It ends by the signal, after the job at hand, or when no job came for `timeout` seconds.
	 */
	reserve(tubes: string | string[], how?: { signal?: AbortSignal; timeout?: number }): AsyncIterable<Job>;
	/**
	 * Run `act` for each job: it is finished when that returns, and released with the error when it throws. Meanwhile the job is
	 * touched. A job without a limit of its own is buried after `attempts` deliveries (10; 0: never). A lost connection is opened
	 * again. onError is called with both kinds of errors, one of the connection for all jobs at once, and with what ends the worker; without
	 * it they are written to standard error.
	 */
	work(tubes: string | string[], act: (job: Job) => unknown, how?: { concurrency?: number; touch?: boolean; attempts?: number; onError?: (error: Error, job?: Job) => void }): Worker;
	/** Workers end their jobs first, unless this is called in a job of this client. A loop that reserves ends: at once, or when its body has done with the job at hand. */
	close(): Promise<void>;
}

export class Sessions {
	private constructor();
	/** 127.0.0.1:6380 by default. `prefix` stands before each id: "sess:" by default. */
	static connect(address?: string, how?: Connecting & { prefix?: string }): Promise<Sessions>;
	get(id: string): Promise<string | undefined>;
	getBytes(id: string): Promise<Buffer | undefined>;
	/**
	 * Keep a value for `idle` seconds from its last set or touch, and at most for `lifetime` seconds. `keep`: it ends when the
	 * former value would have ended.
	 */
	set(id: string, value: Body, how?: { idle?: number; lifetime?: number; keep?: boolean }): Promise<void>;
	/** False: it has ended. */
	touch(id: string, idle: number): Promise<boolean>;
	destroy(id: string): Promise<boolean>;
	/** Another id for the same session, as at login. */
	rename(id: string, to: string): Promise<boolean>;
	/** Null: never; undefined: it has ended. */
	endsAt(id: string): Promise<Date | null | undefined>;
	ids(): AsyncIterable<string>;
	/** Sessions as they end, while this is connected: what ends once `ready` is kept is told. */
	expired(how?: { signal?: AbortSignal }): AsyncGenerator<{ id: string; value: string; bytes: Buffer }, void> & { ready: Promise<void> };
	/** Any command of the server. */
	command(...words: (string | number | Uint8Array)[]): Promise<any>;
	close(): Promise<void>;
}

/** A class of stores for express-session, which is given. */
export function sessionStore<T extends new (...args: any[]) => any>(session: { Store: T }): new (how: { sessions: Sessions; ttl?: number; lifetime?: number }) => InstanceType<T>;
