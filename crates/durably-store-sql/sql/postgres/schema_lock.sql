select version from durable_schema where version = 0 for update
