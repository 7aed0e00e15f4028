-- Limits in seconds: for a lock, for a statement, for a transaction whose client says nothing. A
-- long list of values stays a list: as a table it would make the server scan.
set session innodb_lock_wait_timeout = $1, session max_statement_time = $2,
    session idle_transaction_timeout = $3, session in_predicate_conversion_threshold = 0
