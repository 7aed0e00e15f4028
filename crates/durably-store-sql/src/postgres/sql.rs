//! The statements that only PostgreSQL needs, by name. They stand in files under `sql/postgres/`.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str =
            include_str!(concat!("../../sql/postgres/", $file, ".sql"));)*

        /// Every one, with the name of its file.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

statements! {
    NOW = "now";
    NOW_LIMITED = "now_limited";
    NOTIFY = "notify";
    PLANS = "plans";
    PROBE = "probe";
    SCHEMA_CREATE = "schema_create";
    SCHEMA_LOCK = "schema_lock";
    SCHEMA_LOCK_ROW = "schema_lock_row";
    SCHEMA_TABLE = "schema_table";
    SCHEMA_THERE = "schema_there";
}
