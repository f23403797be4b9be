# The library weekwheel_postgres: jobs in PostgreSQL, put in the transactions of those who use it.
postgres_LIBRARY := weekwheel_postgres
postgres_FOLDERS := lib/postgres
postgres_HEADERS := jobs_postgres
postgres_USES := jobs
postgres_NEEDS := libpq=libpq-dev uthash.h=uthash-dev
postgres_TESTS := tests/lib/postgres
postgres_HELPERS := tests/support/postgres
postgres_OBJECTS := $(B)/obj/gen/postgres_schema.o

# The library makes its tables itself, and carries the text for that.
$(B)/gen/postgres_schema.c: $(patsubst %,lib/postgres/%.sql,schema finish schedules views functions) scripts/file-to-c $(B)/config.mk
	@mkdir -p $(@D)
	$(call quiet,FILE,$@)scripts/file-to-c lib/postgres/schema.h $(filter %.sql,$^) >$@
# Its tests see the connection.
$(B)/obj/tests/lib/postgres/% $(B)/obj/tests/support/postgres/%: PART += $(postgres_CFLAGS)
