# Measures jobs in Redis, for "make bench-redis".
bench_redis_PROGRAM := bench-redis
bench_redis_FOLDERS := tools/bench/redis
bench_redis_USES := redis callback common
bench_redis_WANTS := MICROHTTPD:libmicrohttpd=libmicrohttpd-dev
