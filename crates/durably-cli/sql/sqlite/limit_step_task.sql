-- One task ended and the next created as claimed, in place, under the claim of this process.
update durable_tasks
set target = ?5, seq = ?2 + 2, claimed_at = ?4, deadline = ?4 + 600000, input = ?6
where run = ?1 and place = 1 and seq = ?2 and owner = ?3 and state = 'claimed'
