select leader, term, renewed_at, lease_ms
from durable_leader
where id = 1
