//! Every statement by name, in the words of each dialect. Statements stand in files under `sql/`;
//! what varies is bound. A table's name begins with `durable_`, which becomes the schema or the
//! prefix of the user's choice.

/// Which server's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Postgres,
    Mysql,
}

/// The names of the user's tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Naming {
    /// Where tables are; none if the server decides. MySQL has none beside the database.
    pub(crate) schema: Option<String>,
    /// What every name begins with.
    pub(crate) prefix: String,
}

impl Naming {
    /// What PostgreSQL keeps of a name.
    pub(crate) const SCHEMA_MAX: usize = 63;
    /// With the longest of our names it must fit into the 63 bytes that PostgreSQL keeps of one.
    pub(crate) const PREFIX_MAX: usize = 24;
}

/// What tables, indexes and constraints begin with in our texts.
const OURS: &str = "durable_";

/// Every statement as the server hears it.
#[derive(Clone, Debug)]
pub(crate) struct Texts(Vec<String>);

impl Texts {
    pub(crate) fn new(dialect: Dialect, naming: &Naming) -> Texts {
        let mut texts: Vec<(Sql, String)> =
            Sql::ALL.iter().map(|sql| (*sql, render(sql.text(dialect), dialect, naming))).collect();
        texts.sort_by_key(|(sql, _)| *sql);
        Texts(texts.into_iter().map(|(_, text)| text).collect())
    }

    pub(crate) fn of(&self, sql: Sql) -> &str {
        &self.0[sql as usize]
    }
}

/// A text with the user's names instead of ours. Quoted text and comments stay as they are.
pub(crate) fn render(text: &str, dialect: Dialect, naming: &Naming) -> String {
    let mut rendered = String::with_capacity(text.len() + 64);
    // The two words before.
    let mut before = ["", ""];
    for token in tokens(text) {
        if token.starts_with(OURS) {
            if let (Some(schema), true) = (&naming.schema, is_placed(before, dialect)) {
                rendered.extend(["\"", schema, "\"."]);
            }
            rendered.push_str(&naming.prefix);
        }
        rendered.push_str(token);
        if token.starts_with(is_word) {
            before = [before[1], token];
        }
    }
    rendered
}

/// Whether a name may say where it is. Constraints cannot, nor an index that is being created (it
/// is where its table is), nor a table whose rows are to be locked, nor a new name.
fn is_placed(before: [&str; 2], dialect: Dialect) -> bool {
    let [first, second] = before.map(str::to_ascii_lowercase);
    let unplaced = match second.as_str() {
        "constraint" | "of" | "to" => true,
        "index" => first == "create" || first == "unique",
        _ => false,
    };
    dialect == Dialect::Postgres && !unplaced
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Words, quoted texts, comments, and what is in between.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let quoted = |quote: char| rest[1..].find(quote).map_or(rest.len(), |end| end + 2);
        let end = match first {
            '\'' | '"' | '`' => quoted(first),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let token;
        (token, rest) = rest.split_at(end);
        Some(token)
    })
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
        InboxPage = "inbox_page";
        LeaderLock = "leader_lock";
        LeaderRead = "leader_read";
        LeaderSave = "leader_save";
        LettersAll = "letters_all";
        LettersOfRun = "letters_of_run";
        OwnerUnread = "owner_unread";
        RunById = "run_by_id";
        RunsAll = "runs_all";
        RunsByKey = "runs_by_key";
        SweepLate = "sweep_late";
        SweepLost = "sweep_lost";
        TasksOfCall = "tasks_of_call";
        TasksOfOwner = "tasks_of_owner";
        TasksOfRun = "tasks_of_run";
        WorkerById = "worker_by_id";
        WorkerInsert = "worker_insert";
        WorkerLock = "worker_lock";
        WorkerSave = "worker_save";
        WorkersAhead = "workers_ahead";
        WorkersAll = "workers_all";
    }
    each {
        ClaimHeads = "claim_heads";
        ClaimLevels = "claim_levels";
        ClaimTake = "claim_take";
        ClaimTenants = "claim_tenants";
        Examine = "examine";
        Foremost = "foremost";
        HistoryFirst = "history_first";
        HistoryInsert = "history_insert";
        InboxFind = "inbox_find";
        InboxInsert = "inbox_insert";
        InboxUnread = "inbox_unread";
        LettersInsert = "letters_insert";
        RunsBegin = "runs_begin";
        RunsByKeys = "runs_by_keys";
        RunsByStatus = "runs_by_status";
        RunsEnd = "runs_end";
        RunsHead = "runs_head";
        RunsInsert = "runs_insert";
        RunsLock = "runs_lock";
        RunsLockFree = "runs_lock_free";
        RunsLockStamps = "runs_lock_stamps";
        RunsParked = "runs_parked";
        RunsRead = "runs_read";
        RunsSave = "runs_save";
        RunsThere = "runs_there";
        SweepDue = "sweep_due";
        SweepNext = "sweep_next";
        TasksBegin = "tasks_begin";
        TasksDelete = "tasks_delete";
        TasksInsert = "tasks_insert";
        TasksLock = "tasks_lock";
        TasksLockAll = "tasks_lock_all";
        TasksLockWatched = "tasks_lock_watched";
        TasksPut = "tasks_put";
        TasksSave = "tasks_save";
        TasksStep = "tasks_step";
        WorkersBury = "workers_bury";
        WorkersRead = "workers_read";
        WorkersSetBack = "workers_set_back";
        WorkersStale = "workers_stale";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(text: &str) -> String {
        let naming = Naming { schema: Some("s".to_owned()), prefix: "p_".to_owned() };
        render(text, Dialect::Postgres, &naming)
    }

    #[test]
    fn names_are_where_the_user_wants_them() {
        for (ours, theirs) in [
            (
                "select durable_a.x from durable_a",
                r#"select "s".p_durable_a.x from "s".p_durable_a"#,
            ),
            ("create table durable_a (x)", r#"create table "s".p_durable_a (x)"#),
            (
                "create unique index durable_i on durable_a (x)",
                r#"create unique index p_durable_i on "s".p_durable_a (x)"#,
            ),
            (
                "create index durable_i\n  on durable_a",
                "create index p_durable_i\n  on \"s\".p_durable_a",
            ),
            ("drop index durable_i", r#"drop index "s".p_durable_i"#),
            ("x constraint durable_c check", "x constraint p_durable_c check"),
            ("for update of durable_a", "for update of p_durable_a"),
            (
                "'durable_a' \"durable_a\" -- durable_a\n x",
                "'durable_a' \"durable_a\" -- durable_a\n x",
            ),
            ("undurable_x", "undurable_x"),
        ] {
            assert_eq!(placed(ours), theirs);
        }
        let plain = "insert into durable_a values ($1, 'it''s') -- don't";
        assert_eq!(render(plain, Dialect::Postgres, &Naming::default()), plain);
        let naming = Naming { schema: None, prefix: "p_".to_owned() };
        assert_eq!(render("update durable_a", Dialect::Mysql, &naming), "update p_durable_a");
    }

    #[test]
    fn every_statement_has_its_own_text() {
        let texts = Texts::new(Dialect::Postgres, &Naming::default());
        for sql in Sql::ALL {
            assert_eq!(texts.of(*sql), sql.text(Dialect::Postgres), "{sql:?}");
        }
    }
}
