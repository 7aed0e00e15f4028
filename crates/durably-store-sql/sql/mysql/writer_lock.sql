-- The same, for whoever is about to change it.
select checksum
from durable_schema
where version = 0
for update
