-- require part_shard
-- require part_refer
-- require part_show
-- ARGV[7]: whether the body is wanted.
return show(id, job, ARGV[7] == '1')
