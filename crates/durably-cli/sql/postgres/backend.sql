select pg_backend_pid(), 'PostgreSQL ' || current_setting('server_version')
