select version, name, checksum from durable_schema order by version
