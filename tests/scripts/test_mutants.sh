#!/bin/bash
# Mutants of a small tree: one that its test notices, one that it does not, and those that are drawn again.
# tier: check, no-sanitizers
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
program=$PWD/scripts/mutants
source tests/support/cli.sh
mkdir -p lib/small tests/lib/small build
touch build/config.mk

cat >Makefile <<'MAKE'
check: $(T:%=build/tests/%)
	@mkdir -p build/tests/log && : >build/tests/log/results.jsonl; failures=0; for name in $(T); do \
		B=build bash tests/lib/small/$$name.sh; failed=$$?; failures=$$((failures + failed)); \
		printf '{"name": "%s", "passed": %d, "failed": %d, "seconds": 0.5}\n' $$name $$((1 - failed)) $$failed \
			>>build/tests/log/results.jsonl; \
	done; exit $$failures
build/tests/%: build/obj/lib/small/small.o tests/lib/small/test_small.c
	@mkdir -p $(@D)
	$(CC) -o $@ $^
build/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -c -o $@ $<
MAKE
# A line that is mutated has one kind of outcome, whichever of its mutants is drawn.
cat >lib/small/small.c <<'C'
/* Not code: if (a < b && c) return 1; */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#define IS_LESS(a, b) \
	((a) < (b) && 1)

_Static_assert(1 < 2 && 1,
    "1 + 1");
extern int calls, calls_destroy(int count);

int is_less(int a, int b)
{
	static const char text[] = "a < b + 1; // \" && ";

	assert(a < 100 && b < 100);
	fprintf(stderr, "%s %d\n",
	    text, a + b);
	calls++;
	return a < b;
}

int same(int a)
{
	int b;

	b = a;
	b = a;
	calls_destroy(b);
	return b;
}

ptrdiff_t distance(const char *start, const char *end)
{
	return end - start;
}
C
cat >tests/lib/small/test_small.c <<'C'
int calls;
int is_less(int a, int b);

int calls_destroy(int count)
{
	return count;
}

int main(void)
{
	return !is_less(1, 2) || is_less(1, 1);
}
C
cat >tests/lib/small/test_small.sh <<'SH'
"$B/tests/test_small"
SH
echo 'exit 1' >tests/lib/small/test_fails.sh
cp -r lib before

# tries EXPECTED_STATUS FOLDER...
tries() {
	local expected=$1
	shift
	T="${chosen-}" B=build N="${wanted-100}" SEED="${seed-7}" P="${copies-2}" run "$expected" "$@"
}

tries 0 lib/small
says out '^tests left out, as they fail or skip unbroken: test_fails$'
says out '^lib/small, seed 7: test_small 0 s$'
says out '^lib/small/small.c:20: killed by test_small$'
expect 'a survivor is listed with both lines' \
	test "$(grep -A 2 'small.c:19:' out)" = $'lib/small/small.c:19: killed by no test\n-\tcalls++;\n+\t;'
expect 'totals' test "$(tail -n 1 out)" = \
	'2 mutants: 1 killed by no test, 1 killed by test_small; drawn again: 2 the same object, 1 refused by the compiler; seed 7'
expect 'the tree is as it was' diff -r lib before
expect 'the copies are gone' test -z "$(ls -d build/mutants* 2>/dev/null)"

mv out first
copies=1 chosen=test_small tries 0 lib/small
expect 'a seed draws the same mutants' diff <(grep '^[-+l]' first) <(grep '^[-+l]' out)
wanted=1 copies=3 tries 0 lib/small
says out '^1 mutants: '
chosen=test_fails tries 1 lib/small
says err 'no test of the folder passes'
tries 2 lib/smal
tries 2

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
