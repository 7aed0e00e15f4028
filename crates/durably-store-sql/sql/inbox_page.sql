select run, number, id, fact
from durable_inbox
where run = $1 and number > $2
order by number
limit $3
