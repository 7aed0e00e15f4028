-- Whether a node of a Galera cluster takes part in it. State 4 is synced, 2 lets another one copy.
show global status where variable_name in ('wsrep_ready', 'wsrep_local_state')
