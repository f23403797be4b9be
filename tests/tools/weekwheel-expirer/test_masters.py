#!/usr/bin/env python3
"""weekwheel-expirer beside clusters and Sentinels whose nodes expire nothing by themselves: what is told was asked for."""
# tier: long, waits
import contextlib
import os
import re
import signal

from expirer import EXPIRER, Expirer
from harness import ROOT, Case, Cluster, Redis, check, equal, free_port, main, matches, run, until
from masters import LAZY, AllEnds, LazyCluster, Sentinel, be_lazy, slot_of, start_lazy
from sessiond import Client, encoded

KEYS = 300


def fill(cluster, prefix, milliseconds, count=KEYS):
    """Set keys on all nodes. Returns their names."""
    keys = [f"{prefix}:{i}" for i in range(count)]
    masters = cluster.masters()
    with contextlib.ExitStack() as ends:
        clients = [ends.enter_context(Client(node.port)) for node in masters]
        ranges = [[(entry[0], entry[1]) for entry in masters[0].ask("CLUSTER", "SLOTS") if entry[2][1] == node.port] for node in masters]
        for key in keys:
            client = next(client for client, own in zip(clients, ranges) if any(one <= slot_of(key) <= last for one, last in own))
            client.send(encoded("SET", key, "v", "PX", milliseconds))
            equal(client.line(), b"+OK\r\n")
    return keys


def key_of(node, cluster):
    """A key of a slot that this node has."""
    ranges = [(entry[0], entry[1]) for entry in cluster.nodes[0].ask("CLUSTER", "SLOTS") if entry[2][1] == node.port]
    return next(key for key in (f"{{{i}}}" for i in range(100000)) if any(one <= slot_of(key) <= last for one, last in ranges))


class Clusters(Case):
    def test_keys_of_all_masters_end_and_numbers_are_by_node(self):
        with LazyCluster() as cluster, AllEnds(cluster.nodes) as ends:
            before = fill(cluster, "before", 3000)
            # One node is enough of a seed.
            with Expirer(f"redis://127.0.0.1:{cluster.nodes[1].port}") as expirer:
                expirer.exact(3)
                ends.wait(before + fill(cluster, "after", 2000))
                until(lambda: expirer.metric("known") == 0, "none is left")
                # A key that has ended before its deadline is looked up is not counted.
                check(0 < expirer.metric("told_total") <= 2 * KEYS, expirer.metric("told_total"))
                equal(expirer.metric("later_total"), 0)
                equal(expirer.get("/readyz"), (200, "ok\n"))
                places = re.findall(r'^weekwheel_expirer_known\{node="([^"]*)"\}', expirer.get("/metrics")[1], re.M)
                equal(sorted(places), sorted(f"127.0.0.1:{node.port}" for node in cluster.nodes))
                # Keys of one tag, whose slot is one.
                cluster.ask("{tag}", *(("SET", f"{{tag}}{i}", "v", "PX", 300) for i in range(KEYS)))
                ends.wait(f"{{tag}}{i}" for i in range(KEYS))

    def test_a_slot_moves_and_a_node_is_added(self):
        with LazyCluster() as cluster, AllEnds(cluster.nodes) as ends, Expirer(cluster.url) as expirer:
            expirer.exact(3)
            source, target = cluster.nodes[0], cluster.nodes[1]
            tag = key_of(source, cluster)
            keys = [f"{tag}{i}" for i in range(20)]
            cluster.ask(tag, *(("SET", key, "v", "PX", 3000) for key in keys))

            def meanwhile():
                # Half of the keys are there already, and one comes that was not here.
                source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys[:10])
                cluster.ask(tag, ("SET", f"{tag}new", "v", "PX", 100))
                ends.wait([f"{tag}new"])
                # It ends here while its slot leaves: Redis deletes it when it moves the rest.
                cluster.ask(keys[19], ("PEXPIRE", keys[19], 50))

            cluster.move(slot_of(tag), source, target, meanwhile)
            until(lambda: expirer.metric("passes_total") == 4, "a pass of the new owner")
            ends.wait(keys[:19])
            until(lambda: cluster.count() == 0, "none is left")

            added = cluster.add()
            added.ask("CLUSTER", "MEET", "127.0.0.1", source.port, re.search(r"@(\d+)", source.ask("CLUSTER", "NODES"))[1])
            until(lambda: "cluster_known_nodes:4" in added.ask("CLUSTER", "INFO") and "cluster_state:ok" in added.ask("CLUSTER", "INFO"),
                  "the new node knows all")
            tag = key_of(source, cluster)
            keys = [f"{tag}{i}" for i in range(20)]
            cluster.ask(tag, *(("SET", key, "v", "PX", 5000) for key in keys))
            cluster.move(slot_of(tag), source, added)
            expirer.hear(f"Exact from now on at 127.0.0.1:{added.port}")
            with AllEnds([added]) as more:
                more.wait(keys)

    def test_a_replica_takes_over(self):
        with LazyCluster(replicas=1) as cluster, AllEnds(cluster.nodes) as ends, Expirer(cluster.url) as expirer:
            expirer.exact(3)
            master, replica = cluster.nodes[0], cluster.nodes[3]
            keys = fill(cluster, "kept", 20000)
            until(lambda: replica.ask("DBSIZE") == master.ask("DBSIZE"), "the replica has all")
            cluster.take_over(replica)
            expirer.hear(f"Redis at 127.0.0.1:{replica.port} is the master now, instead of 127.0.0.1:{master.port}")
            expirer.exact(4)
            until(lambda: expirer.get("/readyz")[0] == 200, "it is ready")
            until(lambda: master.ask("ROLE")[0] == "slave" and master.ask("ROLE")[3] == "connected", "the old master follows")
            replica.kill()
            expirer.hear(f"Redis at 127.0.0.1:{master.port} is the master now")
            expirer.exact(5)
            ends.wait(keys)
            check(cluster.count() == 0, "none is left")

    def test_a_slot_leaves_while_the_cluster_is_down(self):
        with LazyCluster() as cluster, Expirer(cluster.url) as expirer:
            expirer.exact(3)
            source, target, other = cluster.nodes
            tag = key_of(source, cluster)
            # One of these is due when the cluster is down, however long that takes.
            cluster.ask(tag, *(("SET", f"{tag}{i}", "v", "PX", 500 * i) for i in range(1, 200)))
            other.kill()
            expirer.hear(f"The cluster is down at 127.0.0.1:{source.port}")
            source.ask("FLUSHALL")
            for node in (target, source):
                equal(node.ask("CLUSTER", "SETSLOT", slot_of(tag), "NODE", target.ask("CLUSTER", "MYID")), "+OK")
            start_lazy(other)
            # The source has no key any more that could be asked for.
            until(lambda: expirer.get("/readyz")[0] == 200, "it is ready again")

    def test_half_a_cluster(self):
        with LazyCluster(count=2) as cluster, Expirer(cluster.url) as expirer:
            expirer.exact(2)
            last = cluster.nodes[1].ask("CLUSTER", "SLOTS")[-1][1]
            for node in cluster.nodes:
                node.ask("CLUSTER", "DELSLOTS", last)
            expirer.hear("Nobody serves 1 of the cluster's 16384 slots.*redis-cli --cluster fix")
            equal(expirer.get("/readyz")[0], 503)
            cluster.nodes[1].ask("CLUSTER", "ADDSLOTS", last)
            expirer.hear("Each slot of the cluster has a master again")
            until(lambda: expirer.get("/readyz")[0] == 200, "it is ready again")

    def test_a_cluster_without_slots_is_waited_for(self):
        with Redis("--cluster-enabled", "yes", *LAZY) as node, Expirer(node.url) as expirer:
            be_lazy(node)
            expirer.hear("has no slots yet: give its nodes theirs")
            equal(expirer.get("/readyz")[0], 503)
            node.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            expirer.exact()

    def test_rights_and_the_database_are_named(self):
        with Cluster(count=1) as cluster:
            node = cluster.nodes[0]
            matches("SELECT is not allowed in cluster mode: check the address", run(1, EXPIRER, node.url + "3").err)
            with open(os.path.join(ROOT, "man", "weekwheel-expirer.1"), encoding="utf-8") as file:
                text = file.read().replace("\\-", "-").replace("\\(aq", "'")
            rights = re.search(r"^ACL SETUSER expirer (.*\+asking.*)$", text, re.M)[1].split()
            for lacking in [None, *(set(rights) - {"on", ">PASSWORD", "+client|setname", "+ping", "+pexpiretime", "+pttl"})]:
                node.ask("ACL", "DELUSER", "expirer")
                node.ask("ACL", "SETUSER", "expirer", *(right for right in rights if right != lacking))
                url = f"redis://expirer:PASSWORD@127.0.0.1:{node.port}"
                if lacking:
                    matches("(?s)NOPERM .*[Cc]heck user, password and rights", run(1, EXPIRER, url).err, lacking)
                else:
                    with Expirer(url) as expirer:
                        expirer.exact()


class Sentinels(Case):
    def test_a_switch_of_masters_is_followed(self):
        with Redis(*LAZY) as one, Redis(*LAZY, folder="other") as other, AllEnds([one, other]) as ends:
            be_lazy(one)
            be_lazy(other)
            other.ask("REPLICAOF", "127.0.0.1", one.port)
            until(lambda: "master_link_status:up" in other.ask("INFO", "replication"), "the replica follows")
            with Sentinel(one) as sentinel:
                until(lambda: len(sentinel.ask("SENTINEL", "REPLICAS", "m")) == 1, "the replica is known")
                # A Sentinel that is away costs nothing.
                url = sentinel.url.replace("//", f"//127.0.0.1:{free_port()},")
                with Expirer(url) as expirer:
                    expirer.exact()
                    for i in range(KEYS):
                        one.ask("SET", f"key:{i}", "v", "PX", 15000)
                    until(lambda: other.ask("DBSIZE") == KEYS, "the replica has all")
                    one.process.send_signal(signal.SIGSTOP)
                    expirer.hear(f"Redis at 127.0.0.1:{other.port} is the master now, instead of 127.0.0.1:{one.port}")
                    expirer.exact(2)
                    one.process.send_signal(signal.SIGCONT)
                    ends.wait(f"key:{i}" for i in range(KEYS))
                    until(lambda: expirer.get("/readyz")[0] == 200, "it is ready")
                    until(lambda: one.ask("ROLE")[0] == "slave", "the old master follows")
                    check(expirer.said.count("is the master now") == 1, expirer.said)

    def test_sentinels_with_a_password(self):
        with Redis(*LAZY, "--requirepass", "secret") as redis:
            with Sentinel(redis) as sentinel:
                sentinel.ask("SENTINEL", "SET", "m", "auth-pass", "secret")
                sentinel.ask("ACL", "SETUSER", "default", ">other")
                url = sentinel.url.replace("//", "//:secret@")
                matches("give --sentinel-password-file", run(1, EXPIRER, url).err)
                with open("password", "w", encoding="utf-8") as file:
                    file.write("other\n")
                os.chmod("password", 0o600)
                with Expirer(url, "--sentinel-password-file=password") as expirer:
                    expirer.exact()


main()
