-- Which node of the cluster is written to.
select checksum
from durable_schema
where version = 0
