# The library weekwheel_callback: jobs delivered as HTTP requests.
callback_LIBRARY := weekwheel_callback
callback_FOLDERS := lib/callback
callback_HEADERS := callback
callback_USES := jobs
callback_NEEDS := libcurl=libcurl4-gnutls-dev libcrypto=libssl-dev
callback_TESTS := tests/lib/callback $(if $(filter redis,$(COMPONENTS)),tests/lib/callback/redis)
callback_HELPERS := tests/support/callback
callback_FUZZERS := callback
callback_FUZZED := lib/callback/request.c lib/callback/text.c
