begin isolation level repeatable read;
select count(*) from durable_runs
