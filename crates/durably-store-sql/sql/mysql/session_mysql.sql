-- Limits in seconds: for a lock, for a client that says nothing. There is none for transactions
-- alone.
set session innodb_lock_wait_timeout = $1, session wait_timeout = $2
