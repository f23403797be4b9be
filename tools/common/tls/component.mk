# TLS for the programs that speak it; the others need no OpenSSL. tls.h says how it works.
tls_FOLDERS := tools/common/tls
tls_USES := common
tls_NEEDS := openssl=libssl-dev
tls_TESTS := tests/tools/common/tls
tls_FUZZED := tools/common/tls
