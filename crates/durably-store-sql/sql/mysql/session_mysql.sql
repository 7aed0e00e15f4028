-- Seconds. There is no limit for idling in a transaction alone, so connections are not left idle
-- for long otherwise either.
set session wait_timeout = 30
