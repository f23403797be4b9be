#!/usr/bin/env python3
"""Wrong command lines of weekwheeld: the message names the option and the wrong word and says what to write instead, the
exit status is 2, and the server does not begin."""
# tier: check
import os

from harness import WEEKWHEELD, Case, Server, equal, main, matches, refused, run

REDIS = ("--store", "redis://127.0.0.1:1/")
PUSH = ("--memory", "--push", "a")


def all_refused(*rows):
    """Each row has arguments that end in an option and its value, the wrong word, and what to write instead."""
    for arguments, word, remedy in rows:
        said = refused(*arguments)
        wanted = "%s '%s': expected " % (arguments[-2], word)
        assert said is None or (wanted in said and remedy in said), (arguments, wanted, said)


class Options(Case):
    def test_numbers(self):
        all_refused(*((("--memory", option, value), value, remedy) for option, value, remedy in (
            ("--max-job-size", "0", "bytes, 1 to 1073741824"), ("--max-job-size", "10k", "bytes, 1 to 1073741824"),
            ("--max-connections", "x", "0 to 10000000"), ("--max-output", "5", "bytes, 4096 to 1073741824"),
            ("--max-disk", "10m", "bytes, 67108864 to"), ("--max-disk", "1000", "10G, or 0"),
            ("--max-downtime", "-1", "30d, 0 s to 3650 d"),
            ("--sync-interval", "0", "1 ms to 1 h"), ("--sync-interval", "9999", "50ms, 2s or 30d, 1 ms to 1 h"),
            ("--redis-shards", "4097", "1 to 4096"), ("--redis-lease", "0.5", "1 s to 1 h"),
            ("--redis-timeout", "2h", "10 ms to 1 h"), ("--push-in-flight", "0", "1 to 65536"),
            ("--push-per-host", "-1", "1 to 65536"), ("--push-attempts", "-1", "0 to 1000000"), ("--push-rest-after", "x", "0 to 1000000"), ("--push-timeout", "2d", "1 ms to 1 d"),
            ("--push-connect-timeout", "0", "1 ms to 1 h"), ("--push-grace", "3601", "0 s to 1 h"))))

    def test_sizes_and_times_have_units(self):
        with Server("--data", "jobs", "--max-disk", "64M", "--max-job-size", "100K", "--sync", "interval", "--sync-interval", "20ms", "--max-downtime", "3d") as server, server.client() as client:
            equal(client.numbers("stats")["max-job-size"], "102400")
        with Server("--data", "jobs", "--max-disk", "0"):
            pass

    def test_a_port_as_beanstalkd_takes_it(self):
        said = run(2, WEEKWHEELD, "--memory", "-p", "11300", "--push-grace", "x").err
        matches('a tube "11300" are pushed: a port is given as --listen HOST:PORT', said)
        equal("are pushed" in run(2, WEEKWHEELD, "--memory", "-p", "a1", "--push-grace", "x").err, False)

    def test_one_word_of_a_list(self):
        all_refused(
            (("--memory", "--push", "a,-x"), "-x", "does not begin with a dash"),
            (("--memory", "--push", "a,,b"), "a,,b", "before and behind each comma"),
            (("--memory", "--push", ",".join("t%d" % i for i in range(65))), "t64", "at most 64"),
            (PUSH + ("--push-networks", "loopback,lan"), "lan", "loopback, private, link-local, special"),
            (PUSH + ("--push-networks", "private,10.0.0.0/33"), "10.0.0.0/33", "a range such as 10.1.0.0/16"),
            (PUSH + ("--push-networks", "10.9.8.7/12"), "10.9.8.7/12", "expected 10.0.0.0/12,"),
            (PUSH + ("--push-networks", "fd00::1/8"), "fd00::1/8", "expected fd00::/8,"),
            (PUSH + ("--push-networks", "fe"), "fe", "a range such as"),
            (PUSH + ("--push-deny", "192.0.2.0/24,office"), "office", "192.0.2.0/24 or 2001:db8::/32"),
            (PUSH + ("--push-deny", "2001:db8::/129"), "2001:db8::/129", "2001:db8::/32"),
            (PUSH + ("--push-schemes", "https,ftp"), "ftp", "http, https"),
            (PUSH + ("--push-success", "204,abc"), "abc", "200 to 599"),
            (PUSH + ("--push-success", "199"), "199", "200 to 599"))

    def test_words(self):
        all_refused(
            (("--memory", "--sync", "sometimes"), "sometimes", "always, interval or system"),
            (("--memory", "--clock", "virtual:soon"), "virtual:soon", "virtual:SECONDS"),
            (("--memory", "--listen", "11300"), "11300", "such as 127.0.0.1:11300"),
            (("--memory", "--listen", "127.0.0.1:65536"), "127.0.0.1:65536", "0 to 65535"),
            (("--memory", "--http", ":80"), ":80", "HOST:PORT"),
            (("--data", ""), "", "DIR"), (("--memory", "--unix", ""), "", "PATH"),
            (("--store", "127.0.0.1:6379"), "127.0.0.1:6379", "redis://HOST:PORT/, unix:///PATH or postgresql://HOST/DATABASE"),
            (("--store", "redis://127.0.0.1:99999/"), "redis://127.0.0.1:99999/", "not a number from 1 to 65535"),
            (("--store", "rediss://127.0.0.1/?to=x"), "rediss://127.0.0.1/?to=x", "ca=FILE, cert=FILE and key=FILE"),
            (("--store", "unix://here"), "unix://here", "unix:///PATH"),
            (REDIS + ("--redis-prefix", "a b"), "a b", "1 to 64 letters"))
        assert "at most 107 bytes" in refused("--memory", "--unix", "/tmp/" + 103 * "a")
        assert "--memory takes no value: leave '=3' out" in refused("--memory=3")
        assert "'jobs': expected only options" in refused("jobs")
        assert "--data needs a value: DIR" in refused("--data")
        assert "is for --data and --memory" in refused("--store", "redis://127.0.0.1:1/", "--max-jobs", "5")
        assert "keeps 10,000 runs" in refused("--store", "redis://127.0.0.1:1/", "--max-history", "5")
        assert "--max-tubes is given twice" in refused("--memory", "--max-tubes", "5", "--max-tubes=6")
        # The hints know the end of the table, too.
        assert "did you mean '--verbose'?" in refused("--memory", "--verbos")

    def test_files(self):
        path = "file"
        with open(path, "w", encoding="ascii") as file:
            file.write("\nno url, and no certificate\n")
        os.chmod(path, 0o600)
        for name, reason in (("/nonexistent/file", "No such file or directory"), (self.folder, "it is a directory")):
            for option in ("--push-secret-file", "--push-ca-file", "--config"):
                all_refused((PUSH + (option, name), name, reason))
            all_refused((("--store-file", name), name, reason))
        all_refused((PUSH + ("--push-secret-file", path), path, "first line is empty"),
                    (PUSH + ("--push-ca-file", path), path, "certificates (PEM): it has none"),
                    (("--store-file", path), path, "first line is empty"))
        with open(path, "w", encoding="ascii") as file:
            file.write("s3cret\n")
        all_refused((("--store-file", path), path, "redis://HOST:PORT/"))
        assert "s3cret" not in refused("--store-file", path)
        with open(path, "w", encoding="ascii") as file:
            file.write("redis://:s3cret@127.0.0.1:x/\n")
        all_refused((("--store-file", path), path, "redis://HOST:PORT/"))
        for said in (refused("--store-file", path), refused("--store", "redis://:s3cret@127.0.0.1:x/"),
                     refused("--store", "rediss://:s3cret@127.0.0.1/?x")):
            assert said is None or ("s3cret" not in said and said.count("expected redis://") + said.count("a file with redis://") == 1), said
        for url in ("127.0.0.1:6379", "redis://:s3cret@127.0.0.1:x/"):
            said = refused(WEEKWHEELD_STORE=url)
            assert said is None or ("WEEKWHEELD_STORE" in said and "expected redis://" in said and url not in said), said

    def test_options_that_exclude_each_other(self):
        path = "url"
        with open(path, "w", encoding="ascii") as file:
            file.write("redis://127.0.0.1:1/\n")
        os.chmod(path, 0o600)
        places = (("--data", self.folder), ("--memory",), REDIS, ("--store-file", path))
        for i, one in enumerate(places):
            for other in places[i + 1:]:
                for arguments in (one + other, other + one):
                    said = refused(*arguments)
                    assert "%s and %s exclude each other" % (one[0], other[0]) in said and "leave one out" in said, said
        said = refused()
        assert "--data DIR or --store URL" in said and "--memory" in said, said

    def test_options_that_need_another(self):
        data = ("--data", self.folder)
        for arguments, option, remedy in (
                (REDIS + ("--sync", "system"), "--sync", "its own configuration"), (("--memory", "--sync", "always"), "--sync", "--data"),
                (REDIS + ("--sync-interval", "1"), "--sync-interval", "--data"),
                (("--memory", "--max-downtime", "1"), "--max-downtime", "--data"),
                (data + ("--sync-interval", "1"), "--sync-interval", "--sync interval"),
                (data + ("--sync", "always", "--sync-interval", "1"), "--sync-interval", "--sync interval"),
                (REDIS + ("--clock", "virtual"), "--clock virtual", "time is that of Redis"),
                (data + ("--redis-shards", "4"), "--redis-shards", "--store is missing"),
                (("--memory", "--redis-prefix", "p"), "--redis-prefix", "--store is missing"),
                (("--memory", "--redis-timeout", "1"), "--redis-timeout", "--store is missing"),
                (("--memory", "--push-grace", "3"), "--push-grace", "--push TUBE is missing"),
                (("--memory", "--push-deny", "192.0.2.0/24"), "--push-deny", "--push TUBE is missing")):
            said = refused(*arguments)
            assert "weekwheeld: %s " % option in said and remedy in said and "leave it out" in said, (arguments, said)
        # PostgreSQL syncs as it is told, if it answers.
        assert "--sync" not in refused("--store", "postgresql://127.0.0.1:1/", "--sync", "system", status=1)

    def test_a_line_of_a_file(self):
        path = "conf"
        with open(path, "w", encoding="ascii") as file:
            file.write("memory\npush = a\npush-networks = loopback,lan\n")
        said = refused("--config", path)
        assert "--push-networks 'lan': expected " in said and "line 3 of " + path + ", where options have no dashes" in said, said
        equal(refused("--config", path).count("\n"), 3)


main()
