insert into durable_schema (version, name, checksum, applied_at) values ($1, $2, $3, $4)
