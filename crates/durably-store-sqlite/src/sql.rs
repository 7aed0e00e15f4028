//! Every statement by name. Statements stand in files under `sql/`; what varies is bound.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $file, ".sql"));)*

        /// Every statement, with the name of its file.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

statements! {
    SCHEMA_CREATE = "schema_create";
    SCHEMA_THERE = "schema_there";
    SCHEMA_LOAD = "schema_load";
    SCHEMA_INSERT = "schema_insert";
    ORDER_LOAD = "order_load";
    ORDER_SAVE = "order_save";
    RUN_INSERT = "run_insert";
    RUN_LOAD = "run_load";
    RUN_BY_ID = "run_by_id";
    RUN_BY_KEY = "run_by_key";
    RUN_STEP = "run_step";
    RUN_SAVE = "run_save";
    RUN_INBOX = "run_inbox";
    RUNS_ALL = "runs_all";
    RUNS_BY_STATUS = "runs_by_status";
    RUNS_BY_KEY = "runs_by_key";
    RUNS_PARKED = "runs_parked";
    STEP_CHECK_TASK = "step_check_task";
    STEP_CHECK_TURN = "step_check_turn";
    STEP_RUN = "step_run";
    STEP_TASK = "step_task";
    STEP_CALL = "step_call";
    STEP_END = "step_end";
    HISTORY_INSERT = "history_insert";
    HISTORY_PAGE = "history_page";
    HISTORY_FIRST = "history_first";
    HISTORY_LOOK_UP = "history_look_up";
    TASK_LOAD = "task_load";
    TASK_LOAD_ROW = "task_load_row";
    TASK_FENCE = "task_fence";
    TASK_PUT = "task_put";
    TASK_PUT_OVER = "task_put_over";
    TASK_SAVE = "task_save";
    TASK_TAKE = "task_take";
    TASK_HEARTBEAT = "task_heartbeat";
    TASK_UNNAMED = "task_unnamed";
    TASK_DELETE = "task_delete";
    TASK_DELETE_ROW = "task_delete_row";
    TASK_CANCEL = "task_cancel";
    LEADER_LOAD = "leader_load";
    LEADER_SAVE = "leader_save";
    TASKS_OF_RUN = "tasks_of_run";
    TASKS_OF_OWNER = "tasks_of_owner";
    TASKS_OF_CALL = "tasks_of_call";
    TURN_INSERT = "turn_insert";
    TURN_KEEP = "turn_keep";
    END_DELETE = "end_delete";
    END_LEFT = "end_left";
    END_CANCEL = "end_cancel";
    EXAMINE = "examine";
    INBOX_PAGE = "inbox_page";
    INBOX_FIND = "inbox_find";
    INBOX_INSERT = "inbox_insert";
    INBOX_UNREAD = "inbox_unread";
    INBOX_ENTRY = "inbox_entry";
    LETTER_INSERT = "letter_insert";
    LETTERS_ALL = "letters_all";
    LETTERS_OF_RUN = "letters_of_run";
    WORKER_INSERT = "worker_insert";
    WORKER_STATUS = "worker_status";
    WORKER_CAN = "worker_can";
    WORKER_HOST = "worker_host";
    WORKER_DRAIN = "worker_drain";
    WORKER_LEAVE = "worker_leave";
    WORKER_BEAT = "worker_beat";
    WORKER_STALE = "worker_stale";
    WORKERS_AHEAD = "workers_ahead";
    WORKERS_ALIVE = "workers_alive";
    WORKERS_COUNT = "workers_count";
    WORKERS_ALL = "workers_all";
    OWNER_UNREAD = "owner_unread";
    CLAIM_LEVEL = "claim_level";
    CLAIM_TENANT_FIRST = "claim_tenant_first";
    CLAIM_TENANT_AFTER = "claim_tenant_after";
    CLAIM_TENANT_LAST = "claim_tenant_last";
    CLAIM_HEADS = "claim_heads";
    SWEEP_OWNERS = "sweep_owners";
    SWEEP_LOST = "sweep_lost";
    SWEEP_DUE = "sweep_due";
    SWEEP_LATE = "sweep_late";
    SWEEP_NEXT = "sweep_next";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::open_writer;
    use durably_kernel::Timestamp;
    use rusqlite::Connection;
    use std::time::Duration;

    fn database() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.db");
        let conn = open_writer(&path, Timestamp(0), Duration::ZERO).expect("opens");
        (folder, conn)
    }

    /// How SQLite goes about a statement, a line for each step.
    fn plan(conn: &Connection, sql: &str) -> Vec<String> {
        let mut statement = conn.prepare(&["explain query plan ", sql].concat()).expect("prepares");
        for at in 1..=statement.parameter_count() {
            statement.raw_bind_parameter(at, 0).expect("binds");
        }
        let mut rows = statement.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().expect("a plan") {
            steps.push(row.get(3).expect("a step of a plan"));
        }
        steps
    }

    #[test]
    fn every_file_has_a_name_and_fits_the_schema() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql");
        let files = std::fs::read_dir(folder).expect("the folder of statements");
        let mut files: Vec<String> = files
            .map(|file| file.expect("a file").file_name().into_string().expect("a plain name"))
            .collect();
        files.sort();
        let mut named: Vec<String> = ALL.iter().map(|(file, _)| format!("{file}.sql")).collect();
        named.sort();
        assert_eq!(files, named);
        let (_folder, conn) = database();
        for (file, sql) in ALL {
            conn.prepare(sql).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
    }

    #[test]
    fn claims_walk_the_index_of_ready_rows_and_sort_nothing() {
        let (_folder, conn) = database();
        let keyed = "queue=? AND kind=? AND name=? AND version=?";
        for (sql, bounds) in [
            (CLAIM_LEVEL, keyed.to_owned()),
            (CLAIM_TENANT_FIRST, format!("{keyed} AND priority=? AND fresh=?")),
            (CLAIM_TENANT_LAST, format!("{keyed} AND priority=? AND fresh=?")),
            (CLAIM_TENANT_AFTER, format!("{keyed} AND priority=? AND fresh=? AND tenant>?")),
            (
                CLAIM_HEADS,
                format!("{keyed} AND priority=? AND fresh=? AND tenant=? AND ready_order>?"),
            ),
        ] {
            let wanted =
                format!("SEARCH durable_tasks USING COVERING INDEX durable_tasks_ready ({bounds})");
            assert_eq!(plan(&conn, sql), [wanted]);
        }
    }

    /// Statements that look at every row of a small table, or at every row that some process has in
    /// its hands. Nothing else goes through a whole table, or sorts what it finds.
    #[test]
    fn nothing_goes_through_a_whole_table() {
        let (_folder, conn) = database();
        let scans = [
            ("durable_schema", "schema_load"),
            ("durable_workers", "workers_ahead"),
            ("durable_workers", "workers_alive"),
            ("durable_workers", "workers_all"),
            ("durable_workers", "workers_count"),
            ("r USING", "runs_parked"),
            ("durable_tasks USING INDEX durable_tasks_owner", "sweep_late"),
            ("durable_tasks USING INDEX durable_tasks_owner", "sweep_next"),
            ("durable_tasks USING INDEX durable_tasks_due", "sweep_next"),
            ("durable_tasks USING COVERING INDEX durable_tasks_due", "sweep_next"),
            ("durable_tasks USING COVERING INDEX durable_tasks_owner", "sweep_owners"),
            ("durable_dead_letter_queue", "letters_all"),
            ("i", "examine"),
            ("sqlite_master", "schema_there"),
        ];
        let sorts = [
            // The ids of one page.
            "examine",
            "sweep_late",
            "sweep_lost",
            "tasks_of_call",
            "tasks_of_owner",
            "owner_unread",
            "runs_by_key",
        ];
        let inner = ["owners", "(subquery", "CONSTANT ROW"];
        for (file, sql) in ALL {
            for step in plan(&conn, sql) {
                let scan = step.strip_prefix("SCAN ").unwrap_or_default();
                let known = scan.is_empty()
                    || inner.iter().any(|name| scan.starts_with(name))
                    || scans.iter().any(|(what, of)| of == file && scan.starts_with(what));
                assert!(known, "{file}: {step}");
                let sorted = step.contains("TEMP B-TREE") && !sorts.contains(file);
                assert!(!sorted, "{file}: {step}");
            }
        }
    }
}
