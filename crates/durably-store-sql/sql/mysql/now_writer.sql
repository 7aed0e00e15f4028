select timestampdiff(microsecond, '1970-01-01 00:00:00', utc_timestamp(6)),
    (select checksum from durable_schema where version = 0)
