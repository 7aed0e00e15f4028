-- The stamps of those that nobody has locked.
select id, stamp
from durable_runs
where id = any($1)
order by id
for update skip locked
