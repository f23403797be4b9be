# Loads a server of jobs, for "make bench-jobs".
load_PROGRAM := bench-load
load_FOLDERS := tools/bench/load
load_USES := common
