-- Whether a node of a Galera cluster takes part in it.
show global status where variable_name in ('wsrep_ready', 'wsrep_local_state_comment')
