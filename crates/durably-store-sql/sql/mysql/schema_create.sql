create table if not exists durable_schema (
    version bigint not null primary key,
    name text not null,
    checksum text not null,
    applied_at bigint not null
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
