select
    (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    set_config('lock_timeout', $1, true),
    set_config('statement_timeout', $2, true),
    set_config('idle_in_transaction_session_timeout', $3, true)
