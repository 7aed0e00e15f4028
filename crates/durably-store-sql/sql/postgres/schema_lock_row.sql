insert into durable_schema (version, name, checksum, applied_at) values (0, 'lock', '', 0)
on conflict do nothing
