-- require part_shard
-- What is due has been put where it belongs. Replies the time now and that of the next alarm.
return {now, alarm}
