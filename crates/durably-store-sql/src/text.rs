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
    }
    each {
    }
}
