select cast(@@pid_file as char), cast(version() as char)
