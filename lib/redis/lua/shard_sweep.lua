-- Move what is due, which the prologue has done. Replies the time now and the next alarm.
-- require part_shard
return {now, alarm}
