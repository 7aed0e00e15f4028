-- A name cannot be a parameter here; it was set before.
set @durably_bench = concat('create database `', @durably_bench_name, '`');
prepare durably_bench from @durably_bench;
execute durably_bench;
deallocate prepare durably_bench
