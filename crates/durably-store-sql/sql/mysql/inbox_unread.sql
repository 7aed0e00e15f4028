-- Numbers have no gaps.
select run, number, id, fact
from durable_inbox force index (primary)
where <<or (run = $1 and number > $2 and number <= $2 + least($3, 100000))>>
order by run, number
