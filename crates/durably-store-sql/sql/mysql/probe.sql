-- What a server is and how it is set up. Servers leave out what they do not know.
show global variables where variable_name in (
    'version', 'read_only', 'super_read_only', 'innodb_read_only', 'wsrep_on', 'wsrep_node_name',
    'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'log_bin', 'sync_binlog',
    'max_allowed_packet'
)
