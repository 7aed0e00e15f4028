-- Seconds. A transaction whose client is out of reach ends; a statement without end does too.
set session idle_transaction_timeout = 10, session max_statement_time = 60,
    session wait_timeout = 600
