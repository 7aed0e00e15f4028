delete from durable_tasks t
using unnest($1::uuid[], $2::integer[]) as n (run, place)
where t.run = n.run and t.place = n.place and (t.owner = $3) is true
