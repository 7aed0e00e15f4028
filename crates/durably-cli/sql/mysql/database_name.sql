set @durably_bench_name = ?
