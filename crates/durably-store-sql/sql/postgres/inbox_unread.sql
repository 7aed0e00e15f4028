select i.run, i.number, i.id, i.fact
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as p (run, after, most)
cross join lateral (
    select run, number, id, fact
    from durable_inbox
    where run = p.run and number > p.after
    order by number
    limit p.most
) i
