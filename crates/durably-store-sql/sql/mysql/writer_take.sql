-- From now on this node is written to.
insert into durable_schema (version, name, checksum, applied_at)
values (0, 'writer', $1, timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)) div 1000)
on duplicate key update checksum = values(checksum), applied_at = values(applied_at)
