select i.run, i.id, i.number
from unnest($1::uuid[], $2::text[]) as p (run, id)
join durable_inbox i on i.run = p.run and i.id = p.id
