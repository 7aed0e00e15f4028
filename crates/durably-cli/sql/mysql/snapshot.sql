set session transaction isolation level repeatable read;
start transaction with consistent snapshot;
select count(*) from durable_runs
