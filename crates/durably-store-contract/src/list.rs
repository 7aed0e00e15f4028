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
                events_are_numbered_without_gaps
                a_commit_on_another_head_is_a_conflict_and_changes_nothing
                a_commit_to_an_unknown_run_is_answered_so
                a_commit_that_loses_does_not_disturb_its_batch
                an_empty_batch_is_nothing
                a_commit_without_events_moves_no_head
                the_summary_is_what_people_see
                beginning_and_end_have_their_times
                an_ended_run_never_changes
                rows_are_put_and_deleted_with_the_events
                a_row_shows_what_was_put
                a_used_up_claim_takes_its_row_unless_it_is_put_anew
                a_row_that_is_written_over_has_no_owner
                a_commit_carries_deliveries_to_other_runs
                refusals_have_an_order
                ending_over_newer_entries_is_a_conflict_and_changes_nothing
                the_end_takes_every_row_that_nobody_has
                many_events_in_many_commits_come_back_in_order
            }
            fence {
                a_commit_with_any_part_of_a_claim_wrong_is_fenced
                a_holder_with_any_part_of_its_claim_wrong_is_fenced
                a_delivery_with_any_part_of_its_claim_wrong_is_fenced
                a_load_says_which_claims_stand
                a_hand_back_with_any_part_of_the_claim_wrong_is_ignored
                a_beat_names_every_claim_that_is_lost
                all_claims_are_checked_before_anything_is_written
                an_earlier_claim_of_the_same_worker_is_fenced
                a_claim_is_used_up_once
                a_claim_of_an_earlier_task_at_the_same_place_is_fenced
                a_turn_claim_is_fenced_once_it_was_returned
            }
            held {
                a_commit_beside_the_holder_is_held_and_changes_nothing
                a_result_beside_the_holder_is_held_and_its_claim_stands
                the_holder_lets_go_where_nothing_is_left
                the_holder_keeps_the_turn_where_the_inbox_has_more
                the_holder_keeps_the_turn_while_steps_are_under_way
                a_holder_that_returns_the_turn_leaves_it_ready
                a_turn_row_that_is_there_stays_as_it_is
                a_waiting_turn_row_stays_as_it_is
                keep_inserts_a_claimed_turn_where_there_is_none
                keep_by_nobody_leaves_the_turn_ready
                return_inserts_a_ready_turn_where_there_is_none
                release_inserts_no_turn
                each_turn_row_of_a_run_has_a_number_of_its_own
                an_operator_is_not_held_and_takes_the_turn
                an_operators_commit_leaves_the_turn_ready
                an_operator_ends_a_run_that_is_held
                the_inbox_is_handed_out_in_bounded_parts
                what_is_used_up_stays_used_up
                after_a_commit_unread_entries_have_a_turn_row
                a_run_is_held_until_the_claim_is_taken_back
            }
            inbox {
                a_delivery_is_numbered_and_wakes_the_run
                numbers_are_gapless_in_the_order_of_delivery
                further_deliveries_do_not_move_the_turn_back
                a_delivery_to_a_held_run_leaves_it_held
                only_a_cancel_makes_a_waiting_turn_ready
                a_repeat_is_recognised
                a_repeat_is_recognised_after_the_end
                ids_are_of_one_run_and_compared_exactly
                ended_and_unknown_runs_are_told_apart
                an_outcome_takes_its_row_in_the_same_transaction
                an_outcome_with_a_lost_claim_writes_nothing
                a_batch_is_answered_in_order_and_losers_disturb_nobody
                a_signal_has_the_stores_time
                every_kind_of_fact_comes_back_as_it_was
                a_commit_sees_what_was_delivered_meanwhile
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
#[allow(missing_docs, reason = "the names of the cases say what holds")]
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
