delete from durable_tasks t
using unnest($1::uuid[], $2::bigint[]) as p (run, place)
where t.run = p.run and t.place = p.place
