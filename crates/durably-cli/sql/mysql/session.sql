set names binary;
set session transaction isolation level read committed;
set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'
