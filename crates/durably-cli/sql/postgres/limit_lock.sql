-- The first trip of a step: the heads of its runs, which nobody else changes from now on.
select id, head from durable_runs where id = any($1) order by id for update
