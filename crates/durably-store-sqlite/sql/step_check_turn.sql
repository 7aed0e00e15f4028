-- A run under way in the hands of its holder, with nothing unread. No row where anything differs.
select r.rowid, r.version, r.started_at, t.rowid, t.deadline, t.version, t.fresh,
    t.deaths = 0 and t.losses is null
from durable_tasks t
join durable_runs r on r.id = t.run
where t.run = ?1 and t.place = 0 and t.seq = ?2 and t.claim_number = ?3 and t.owner = ?4
    and t.state = 'claimed'
    and r.head = ?5 and r.status = 'running' and r.parked_code is null
    and r.inbox_last = r.inbox_used and r.inbox_used >= ?6
