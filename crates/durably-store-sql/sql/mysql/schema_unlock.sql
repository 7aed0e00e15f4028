select release_lock(concat('durably ', md5(concat(database(), '/', $1))))
