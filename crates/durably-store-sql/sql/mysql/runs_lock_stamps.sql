-- The stamps of those that nobody has locked.
select id, stamp
from durable_runs force index (primary)
where id in (<<in $1>>)
order by id
for update skip locked
