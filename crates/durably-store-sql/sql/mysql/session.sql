-- What every connection is set to, whatever the server's own settings are: what is written is what
-- was bound or an error, what differs is not equal, nobody waits for a lock for long.
set names utf8mb4 collate utf8mb4_bin;
set session transaction isolation level read committed;
set session autocommit = 1, session time_zone = '+00:00',
    session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',
    session innodb_lock_wait_timeout = 5
