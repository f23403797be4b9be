#!/usr/bin/env python3
"""The package for Node: its own tests beside servers with a virtual clock, its types, and the examples of its README."""
# tier: long, no-sanitizers (other tests send the server as much)
import json
import os
import re
import shutil

from bindings import TOKEN, tls_server, write, write_grants
from sessiond import Sessiond
from harness import ROOT, Case, Server, check, equal, main, matches, need_program, run

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(ROOT, "lib", "bindings", "node")


class Node(Case):
    def setUp(self):
        need_program("node")
        super().setUp()
        os.mkdir("node_modules")
        os.symlink(PACKAGE, os.path.join("node_modules", "weekwheel"))
        write("package.json", '{"type": "module"}')

    def suite(self, name, **env):
        """Run a file of tests by node's own runner, and require that all of it ran."""
        shutil.copy(os.path.join(HERE, name), ".")
        said = run(0, "node", "--preserve-symlinks", "--test", "--test-reporter=tap", name, **env).out
        matches(r"# pass [1-9]", said)
        matches(r"# skipped 0\n", said)

    def test_jobs(self):
        write_grants("put,work,read:mail")
        with Server("--clock", "virtual") as server, Server("--auth-file", "tokens") as tokened, tls_server() as tls:
            with open("ca.pem", encoding="utf-8") as ca:
                self.suite("jobs.test.js", SERVER=server.address, TOKENED=tokened.address, TOKEN=TOKEN,
                           TLS=tls, CA=ca.read())

    def test_ends(self):
        with Server("--clock", "virtual") as server:
            self.suite("ends.test.js", SERVER=server.address)

    def test_sessions(self):
        write_grants("read,write:sess:*")
        with Sessiond("--clock", "virtual", "--lifetimes") as server, Sessiond("--auth-file", "tokens") as tokened:
            self.suite("sessions.test.js", SESSIOND=f"127.0.0.1:{server.port}", TOKENED=f"127.0.0.1:{tokened.port}", TOKEN=TOKEN)

    def test_each_example_of_the_readme(self):
        with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
            examples = re.findall(r"^```js\n(.*?)^```\n(?:\nIt prints:\n\n```\n(.*?)^```\n)?", file.read(), re.M | re.S)
        check(len(examples) >= 4, "the README has examples")
        for number, (program, expected) in enumerate(examples):
            with Server() as server, Sessiond("--lifetimes") as sessiond:
                program = program.replace("127.0.0.1:11300", server.address).replace("127.0.0.1:6380", f"127.0.0.1:{sessiond.port}")
                write(f"example{number}.js", program)
                equal(run(0, "node", "--preserve-symlinks", f"example{number}.js").out, expected)

    def test_types(self):
        need_program("tsc")
        # Programs have this from @types/node.
        write("buffer.d.ts", "declare class Buffer extends Uint8Array { toString(encoding?: string): string }\n")
        write("use.ts", """import { Jobs, Sessions, StaleError, type Put, type Schedule } from 'weekwheel';

export async function use(): Promise<number> {
	const jobs = await Jobs.connect('127.0.0.1:11300', { token: 'x' });
	const put: Put = await jobs.put('mail', 'x', { delay: 1.5, key: 'k', mode: 'if-absent' });
	for await (const job of jobs.reserve(['mail', 'sms'], { timeout: 5 }))
		await job.release({ error: new Error('x') });
	const worker = jobs.work('mail', async (job) => { job.json(); }, { concurrency: 4, onError: (error, job) => void [error, job?.id] });
	await worker.stop();
	const all: Schedule[] = [];
	for await (const schedule of jobs.schedules({ tube: 'mail' }))
		all.push(schedule);
	const sessions = await Sessions.connect();
	await sessions.set('id', 'value', { idle: 1800, lifetime: 43200 });
	const value: string | undefined = await sessions.get('id');
	// @ts-expect-error there is no such option
	await jobs.put('mail', 'x', { dely: 1 });
	// @ts-expect-error seconds are a number
	await sessions.touch('id', '5');
	return put.id + all.length + (value?.length ?? 0) + (new StaleError('x') instanceof Error ? 1 : 0);
}
""")
        run(0, "tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "node16", "--moduleResolution", "node16",
            "--preserveSymlinks", "buffer.d.ts", "use.ts")

    def test_all_that_is_packed_is_named(self):
        with open(os.path.join(PACKAGE, "package.json"), encoding="utf-8") as file:
            package = json.load(file)
        with open(os.path.join(ROOT, "include", "weekwheel", "version.h"), encoding="utf-8") as file:
            matches(f'#define WW_VERSION "{re.escape(package["version"])}"', file.read())
        equal(package["files"], ["*.js", "index.d.ts", "README.md"])
        with open(os.path.join(PACKAGE, "index.d.ts"), encoding="utf-8") as file:
            types = file.read()
        write("names.js", "import * as all from 'weekwheel';\nconsole.log(Object.keys(all).join('\\n'));\n")
        for name in run(0, "node", "--preserve-symlinks", "names.js").out.split():
            matches(rf"export (declare )?(abstract )?(class|function) {name}\b", types)


if __name__ == "__main__":
    main()
