create table if not exists durable_schema (
    version integer not null primary key,
    name text not null,
    checksum text not null,
    applied_at integer not null
) strict
