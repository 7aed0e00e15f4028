//! Every statement by name, in the words of each dialect. Statements stand in files under `sql/`;
//! what varies is bound. A table's name begins with `durable_`, which becomes the schema or the
//! prefix of the user's choice.

/// Which server's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Postgres,
    Mysql,
}

macro_rules! statements {
    (both { $($both:ident = $file:literal;)* } each { $($each:ident = $name:literal;)* }) => {
        /// A statement.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(crate) enum Sql {
            $($both,)*
            $($each,)*
        }

        impl Sql {
            /// Every statement.
            pub(crate) const ALL: &[Sql] = &[$(Sql::$both,)* $(Sql::$each,)*];

            /// Its text, before tables have their names.
            pub(crate) fn text(self, dialect: Dialect) -> &'static str {
                match (self, dialect) {
                    $((Sql::$both, _) => include_str!(concat!("../sql/", $file, ".sql")),)*
                    $((Sql::$each, Dialect::Postgres) => {
                        include_str!(concat!("../sql/postgres/", $name, ".sql"))
                    })*
                    $((Sql::$each, Dialect::Mysql) => {
                        include_str!(concat!("../sql/mysql/", $name, ".sql"))
                    })*
                }
            }
        }
    };
}

statements! {
    both {
        SchemaLoad = "schema_load";
        SchemaInsert = "schema_insert";
        ClaimsOfOwner = "claims_of_owner";
        HistoryLookUp = "history_look_up";
        HistoryPage = "history_page";
        LettersAll = "letters_all";
        LettersOfRun = "letters_of_run";
        OwnerUnread = "owner_unread";
        RunById = "run_by_id";
        RunsAll = "runs_all";
        RunsByKey = "runs_by_key";
        RunsByStatus = "runs_by_status";
        RunsParked = "runs_parked";
        SweepDue = "sweep_due";
        SweepLate = "sweep_late";
        SweepLost = "sweep_lost";
        SweepNext = "sweep_next";
        TasksOfCall = "tasks_of_call";
        TasksOfOwner = "tasks_of_owner";
        TasksOfOwnerLock = "tasks_of_owner_lock";
        TasksOfRun = "tasks_of_run";
        WorkerById = "worker_by_id";
        WorkerInsert = "worker_insert";
        WorkerLock = "worker_lock";
        WorkerSave = "worker_save";
        WorkersAll = "workers_all";
        WorkersStale = "workers_stale";
    }
    each {
        ClaimHeads = "claim_heads";
        ClaimLevels = "claim_levels";
        ClaimTake = "claim_take";
        ClaimTenants = "claim_tenants";
        Foremost = "foremost";
        HistoryFirst = "history_first";
        HistoryInsert = "history_insert";
        InboxFind = "inbox_find";
        InboxInsert = "inbox_insert";
        InboxUnread = "inbox_unread";
        LettersInsert = "letters_insert";
        RunsByKeys = "runs_by_keys";
        RunsInsert = "runs_insert";
        RunsLock = "runs_lock";
        RunsLockFree = "runs_lock_free";
        RunsRead = "runs_read";
        RunsSave = "runs_save";
        RunsThere = "runs_there";
        TasksDelete = "tasks_delete";
        TasksLock = "tasks_lock";
        TasksLockAll = "tasks_lock_all";
        TasksLockWatched = "tasks_lock_watched";
        TasksPut = "tasks_put";
        TasksSave = "tasks_save";
        WorkersBury = "workers_bury";
        WorkersRead = "workers_read";
    }
}
