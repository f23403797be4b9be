-- Show a job. Takes the arguments of part_refer, ARGV[7]: 1 with its body.
-- require part_shard
-- require part_refer
-- require part_show
return show(id, job, ARGV[7] == '1')
