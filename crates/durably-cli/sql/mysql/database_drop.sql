set session lock_wait_timeout = 10;
set @durably_bench = concat('drop database if exists `', @durably_bench_name, '`');
prepare durably_bench from @durably_bench;
execute durably_bench;
deallocate prepare durably_bench
