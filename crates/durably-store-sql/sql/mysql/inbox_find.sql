select run, id, number
from durable_inbox force index (durable_inbox_id)
where (run, id) in (<<in ($1, $2)>>)
