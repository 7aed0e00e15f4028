-- What every connection is set to, whatever the server's own settings are. Text is bytes: it comes
-- back as it was, and what differs is not equal. What is written is what was bound, or an error.
-- A change that would look at a whole table is refused, and a small table is not looked at as a
-- whole because that seems cheaper: it would wait for what others have locked.
set names binary;
set session transaction isolation level read committed;
set session autocommit = 1, session time_zone = '+00:00', session sql_safe_updates = 1,
    session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'
