//! Every statement by name. Statements stand in files under `sql/`; what varies is bound.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $file, ".sql"));)*
    };
}

statements! {
    SCHEMA_CREATE = "schema_create";
    SCHEMA_LOAD = "schema_load";
    SCHEMA_INSERT = "schema_insert";
    ORDER_LOAD = "order_load";
    ORDER_SAVE = "order_save";
    RUN_INSERT = "run_insert";
    RUN_LOAD = "run_load";
    RUN_BY_KEY = "run_by_key";
    RUN_STEP = "run_step";
    RUN_SAVE = "run_save";
    RUN_INBOX = "run_inbox";
    RUNS_ALL = "runs_all";
    RUNS_BY_STATUS = "runs_by_status";
    RUNS_BY_KEY = "runs_by_key";
    RUNS_PARKED = "runs_parked";
    HISTORY_INSERT = "history_insert";
    HISTORY_PAGE = "history_page";
    HISTORY_LOOK_UP = "history_look_up";
    TASK_LOAD = "task_load";
    TASK_LOAD_ROW = "task_load_row";
    TASK_FENCE = "task_fence";
    TASK_PUT = "task_put";
    TASK_SAVE = "task_save";
    TASK_HEARTBEAT = "task_heartbeat";
    TASK_UNNAMED = "task_unnamed";
    TASK_DELETE = "task_delete";
    TASK_CANCEL = "task_cancel";
    TASKS_OF_RUN = "tasks_of_run";
    TASKS_OF_OWNER = "tasks_of_owner";
    TASKS_OF_CALL = "tasks_of_call";
    TURN_INSERT = "turn_insert";
    TURN_KEEP = "turn_keep";
    END_DELETE = "end_delete";
    END_CANCEL = "end_cancel";
    INBOX_FIND = "inbox_find";
    INBOX_INSERT = "inbox_insert";
    INBOX_UNREAD = "inbox_unread";
    INBOX_ENTRY = "inbox_entry";
    LETTER_INSERT = "letter_insert";
    LETTERS_ALL = "letters_all";
    LETTERS_OF_RUN = "letters_of_run";
    WORKER_INSERT = "worker_insert";
    WORKER_STATUS = "worker_status";
    WORKER_HOST = "worker_host";
    WORKER_DRAIN = "worker_drain";
    WORKER_LEAVE = "worker_leave";
    WORKER_BEAT = "worker_beat";
    WORKER_STALE = "worker_stale";
    WORKERS_ALIVE = "workers_alive";
    WORKERS_ALL = "workers_all";
    OWNER_UNREAD = "owner_unread";
    CLAIM_LEVEL = "claim_level";
    CLAIM_TENANT_FIRST = "claim_tenant_first";
    CLAIM_TENANT_AFTER = "claim_tenant_after";
    CLAIM_HEADS = "claim_heads";
    SWEEP_OWNERS = "sweep_owners";
    SWEEP_LOST = "sweep_lost";
    SWEEP_DUE = "sweep_due";
    SWEEP_LATE = "sweep_late";
    SWEEP_NEXT = "sweep_next";
}
