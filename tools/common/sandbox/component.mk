# Scripts in Lua within bounds, for the programs that run those of their clients. sandbox.h says how.
lua_FOLDERS := tools/common/sandbox
lua_USES := common
lua_NEEDS := lua5.1=liblua5.1-0-dev
lua_TESTS := tests/tools/common/sandbox

$(B)/obj/tests/tools/common/sandbox/%: PART += $(lua_CFLAGS)
