//! The one list of all cases. A case that stands in its file and not here is dead code to the
//! compiler.

/// Calls a macro with all cases: `each_case!([the::macro] arguments)` becomes
/// `the::macro! { arguments; topic { case case } … }`.
#[doc(hidden)]
#[macro_export]
macro_rules! each_case {
    ([$($then:tt)*] $($argument:tt)*) => {
        $($then)*! { $($argument)*;
            start {
                a_start_makes_a_run_and_a_ready_turn
                the_first_turn_comes_with_event_1
                a_start_with_its_first_turn_is_one_commit
                an_eager_start_keeps_the_turn
                a_delayed_start_is_not_claimed_before_its_time
                a_start_delayed_by_nothing_is_ready
                a_signal_with_the_start_is_in_the_inbox
                a_batch_starts_many
                a_version_that_was_asked_for_is_kept
            }
            commit {
            }
            fence {
            }
        }
    };
}

/// A named test of every case, for a store that says by its fixture how it is opened. To be used
/// once in a file of tests.
#[macro_export]
macro_rules! suite {
    ($fixture:ident) => {
        $crate::each_case! { [$crate::tests] $fixture }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($fixture:ident; $($topic:ident { $($case:ident)* })*) => {
        $(
            mod $topic {
                $(
                    #[test]
                    fn $case() {
                        $crate::cases::$topic::$case::<super::$fixture>();
                    }
                )*
            }
        )*
    };
}

/// Every case as a function of a fixture alone.
pub mod cases {
    macro_rules! runners {
        (; $($topic:ident { $($case:ident)* })*) => {
            $(
                pub mod $topic {
                    $(
                        pub fn $case<F: $crate::Fixture>() {
                            $crate::fixture::run::<F>(async |world| $crate::$topic::$case(&world).await);
                        }
                    )*
                }
            )*
        };
    }
    each_case! { [runners] }
}
