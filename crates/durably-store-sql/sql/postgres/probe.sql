select
    current_setting('server_version_num')::bigint,
    current_setting('server_version'),
    current_setting('server_encoding'),
    coalesce(current_setting('fsync', true), 'on'),
    coalesce(current_setting('full_page_writes', true), 'on'),
    coalesce(current_setting('synchronous_commit', true), 'on'),
    (extract(epoch from current_setting('lock_timeout')::interval) * 1000)::bigint
