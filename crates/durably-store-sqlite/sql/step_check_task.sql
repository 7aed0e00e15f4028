-- A run under way and one of its tasks in the hands of a process, where that process may commit the
-- task's outcome: nobody holds the run, nothing is unread. No row where anything differs.
select r.rowid, r.version, r.started_at, r.tenant, t.rowid, t.call_id is not null
from durable_tasks t
join durable_runs r on r.id = t.run
where t.run = ?1 and t.place = ?2 and t.seq = ?3 and t.claim_number = ?4 and t.owner = ?5
    and t.state = 'claimed' and t.kind = 'activity'
    and r.head = ?6 and r.status = 'running' and r.parked_code is null
    and r.inbox_last = r.inbox_used and r.inbox_used >= ?7
    and not exists (select 1 from durable_tasks h where h.run = ?1 and h.place = 0)
