select set_config('search_path', $1, false), set_config('lock_timeout', '10s', false)
