-- The newest first: what is looked up was tried just now.
select 1 from durable_history where run = ?1 and commit_id = ?2 order by first_seq desc limit 1
