-- Who migrates, of all that use the same names in the same database. A name of a lock is short.
select get_lock(concat('durably ', md5(concat(database(), '/', $1))), $2)
