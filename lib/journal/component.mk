# The journal of jobs and of sessions, private to the library and the program that contain it.
journal_FOLDERS := lib/journal
journal_USES := base
journal_TESTS := tests/lib/journal
