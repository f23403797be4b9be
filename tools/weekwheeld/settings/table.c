/* The table of all options with their help. */
#include "tools/weekwheeld/settings/read.h"

const struct option settings_table[] = {
    {OPTION_DATA, 'd', "data", "DIR", "the folder in which jobs are kept; made if missing"},
    {OPTION_MEMORY, 'm', "memory", NULL, "keep jobs only in memory, until the server ends"},
    {OPTION_STORE, 's', "store", "URL",
        "keep jobs in Redis, for several servers: redis://HOST:PORT/,\nredis://HOST:PORT,HOST:PORT for a cluster, or unix:///PATH"},
    {OPTION_STORE_FILE, 0, "store-file", "FILE", "read that URL from a file, to hide its password"},
    {OPTION_LISTEN, 'l', "listen", "HOST:PORT",
        "where to listen (127.0.0.1:11300); tls:HOST:PORT with TLS; can be given\nseveral times; port 0 takes a free one"},
    {OPTION_TLS_CERT, 0, "tls-cert", "FILE",
        "the certificate, in PEM, for --listen tls:HOST:PORT; read again on SIGHUP"},
    {OPTION_TLS_KEY, 0, "tls-key", "FILE", "its key (in the file of the certificate)"},
    {OPTION_TLS_CLIENT_CA, 0, "tls-client-ca", "FILE", "clients need a certificate that one of these has signed"},
    {OPTION_UNIX, 'u', "unix", "PATH", "listen on a Unix socket, for the server's own user only"},
    {OPTION_SOCKET_MODE, 0, "socket-mode", "MODE", "the mode of that socket, such as 0660 (0600)"},
    {OPTION_SOCKET_GROUP, 0, "socket-group", "NAME", "the group of that socket"},
    {OPTION_AUTH_FILE, 0, "auth-file", "FILE",
        "clients need a token, and this says what each may do; lines are made\nby \"weekwheel token\"; read again on SIGHUP"},
    {OPTION_INSECURE, 0, "insecure", NULL, "let other machines reach this server without TLS or without tokens"},
    {OPTION_HTTP, 0, "http", "HOST:PORT",
        "a page for a browser, the jobs as JSON under /v1/,\n/metrics, /livez, /readyz; tls:HOST:PORT with TLS"},
    {OPTION_HTTP_HOST, 0, "http-host", "NAME",
        "a name by which --http is reached, such as jobs.example.org;\ncan be given several times"},
    {OPTION_SYNC, 0, "sync", "WHEN",
        "always (the default): an answer means stable storage;\ninterval: sync at regular intervals; system: when the system does"},
    {OPTION_SYNC_INTERVAL, 0, "sync-interval", "TIME", "with --sync interval: the interval (50ms)"},
    {OPTION_DOWNTIME, 0, "max-downtime", "TIME", "how long the clock may say that the machine was off (30d)"},
    {OPTION_DISK, 0, "max-disk", "BYTES", "refuse new jobs when the folder takes so much, such as 10G (a full disk)"},
    {OPTION_JOB_SIZE, 'z', "max-job-size", "BYTES", "the longest body of a job (65535)"},
    {OPTION_CONNECTIONS, 0, "max-connections", "N", "the most clients at a time (0: as \"ulimit -n\" allows)"},
    {OPTION_PER_ADDRESS, 0, "max-connections-per-address", "N", "the most of these from one address (0: any)"},
    {OPTION_MAX_MEMORY, 0, "max-memory", "BYTES",
        "refuse new jobs and tubes when jobs and clients take so much memory\n(three quarters of the machine's)"},
    {OPTION_BUFFERS, 0, "max-buffers", "BYTES",
        "the most that commands and answers of all clients take (268435456);\nbeyond it the client with the most of them ends"},
    {OPTION_WATCHED, 0, "max-watched", "N", "the most tubes that a client watches (10000)"},
    {OPTION_TUBES, 0, "max-tubes", "N", "the most tubes in all (100000)"},
    {OPTION_JOBS, 0, "max-jobs", "N", "refuse new jobs when there are so many (0: any number)"},
    {OPTION_TUBE_JOBS, 0, "max-tube-jobs", "N", "refuse new jobs of a tube that has so many (0: any number)"},
    {OPTION_HISTORY, 0, "max-history", "N",
        "keep so many runs of jobs that ask for it, then forget the oldest\n(10000); 0: none"},
    {OPTION_OUTPUT, 0, "max-output", "BYTES", "the most answers a client may leave unread (4194304)"},
    {OPTION_REDIS_PREFIX, 0, "redis-prefix", "NAME", "the beginning of each key in Redis (weekwheel)"},
    {OPTION_REDIS_SHARDS, 0, "redis-shards", "N", "the number of parts of a new store (16)"},
    {OPTION_REDIS_REPLICAS, 0, "redis-replicas", "N", "replicas that must have a job before its put is answered (0)"},
    {OPTION_REDIS_LEASE, 0, "redis-lease", "TIME", "after this silence others take over a server's work (6s)"},
    {OPTION_REDIS_TIMEOUT, 0, "redis-timeout", "TIME", "how long to wait for an answer of Redis (2s)"},
    {OPTION_PUSH, 'p', "push", "TUBE,...", "deliver the jobs of these tubes as HTTP requests"},
    {OPTION_PUSH_IN_FLIGHT, 0, "push-in-flight", "N", "the most requests at a time (256)"},
    {OPTION_PUSH_PER_HOST, 0, "push-per-host", "N", "the most of these to one address (16)"},
    {OPTION_PUSH_TIMEOUT, 0, "push-timeout", "TIME", "how long a request may take, or the job's time to run (30s)"},
    {OPTION_PUSH_ATTEMPTS, 0, "push-attempts", "N", "attempts of a job without a limit of its own (25); 0: no limit"},
    {OPTION_PUSH_REST_AFTER, 0, "push-rest-after", "N",
        "let a host rest after so many requests without an answer (5); 0: never"},
    {OPTION_PUSH_CONNECT_TIMEOUT, 0, "push-connect-timeout", "TIME", "how long a connection may take (5s)"},
    {OPTION_PUSH_GRACE, 0, "push-grace", "TIME", "how long requests may still take when the server ends (10s)"},
    {OPTION_PUSH_SUCCESS, 0, "push-success", "STATUS,...", "statuses that count as success, in addition to 2xx"},
    {OPTION_PUSH_NETWORKS, 0, "push-networks", "WHICH,...",
        "what may be called in addition to public addresses: loopback,\nprivate, link-local, special, ranges such as 10.1.0.0/16"},
    {OPTION_PUSH_DENY, 0, "push-deny", "RANGE,...", "what may not be called, whatever other options say"},
    {OPTION_PUSH_SCHEMES, 0, "push-schemes", "SCHEME,...", "http, https (both)"},
    {OPTION_PUSH_SECRET_FILE, 0, "push-secret-file", "FILE", "sign requests with the secret in this file"},
    {OPTION_PUSH_CA_FILE, 0, "push-ca-file", "FILE", "certificates to trust instead of the system's"},
    {OPTION_CLOCK, 0, "clock", "CLOCK",
        "real (the default), or virtual: time stands still until the verb\n\"advance\"; virtual:SECONDS: this much has passed at the start"},
    {OPTION_CONFIG, 'c', "config", "FILE", "read options from a file, one \"name = value\" a line"},
    {OPTION_LOG_LEVEL, 0, "log-level", "LEVEL", "what to report: error, warning, info (the default), debug"},
    {OPTION_LOG_FORMAT, 0, "log-format", "FORMAT", "text (the default), or json: an object a line"},
    {OPTION_VERBOSE, 'v', "verbose", NULL, "the same as --log-level debug: also clients that come and go"},
    {OPTION_VERSION, 0, "version", NULL, "show the version"},
    {OPTION_HELP, 'h', "help", NULL, "show this help"},
};

const size_t settings_count = sizeof settings_table / sizeof *settings_table;

_Static_assert(OPTION_END <= 64, "each option has a bit of what was given");

/* Return the option's index in the table. */
static int index_of(int id)
{
	int i = 0;

	while (settings_table[i].id != id)
		i++;
	return i;
}

const char *settings_name(int id)
{
	return settings_table[index_of(id)].name;
}

const char *settings_argument(int id)
{
	return settings_table[index_of(id)].argument;
}

int settings_has(const struct settings *settings, int id)
{
	return (settings->given >> id & 1) != 0;
}
