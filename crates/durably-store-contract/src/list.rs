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
                who_watches_a_run_sees_how_it_ended
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
            claim {
                an_activity_comes_with_all_that_is_needed
                a_turn_comes_with_its_unread_inbox
                a_task_is_claimed_once
                only_ready_tasks_are_claimed
                a_repeat_of_a_call_gives_the_same_tasks
                a_repeat_leaves_out_what_is_used_up
                a_call_id_is_of_one_process
                a_process_that_is_not_active_is_refused
                only_tasks_of_its_queues_are_claimed
                a_run_of_a_queue_waits_in_that_queue
                only_types_that_it_hosts_are_claimed
                a_run_without_a_version_is_claimed_by_any_host_of_its_type
                a_pinned_run_is_claimed_by_its_version_alone
                a_version_asked_for_is_claimed_by_it_alone
                each_want_has_a_bound_of_its_own
                a_task_fits_one_want_only
                the_attempt_counts_starts
                tasks_of_an_ended_run_are_not_claimed
                a_claim_says_the_stores_time
            }
            tenant {
                tenants_take_turns
                the_next_claim_goes_on_after_the_cursor
                a_cursor_need_not_be_a_tenant
                one_task_behind_thousands_is_claimed_within_one_round
                shares_are_equal_at_any_depth
                having_been_idle_is_no_credit
                a_tenant_with_more_kinds_of_work_has_no_larger_share
                wants_go_on_where_the_one_before_stopped
                within_a_tenant_the_oldest_comes_first
                becoming_ready_decides_the_order_not_the_age
                tenants_are_told_apart_exactly
                places_of_one_run_are_tasks_of_its_tenant
            }
            priority {
                higher_priorities_come_first
                priority_is_above_fairness
                started_runs_come_before_new_ones
                started_runs_come_first_whatever_their_tenant
                priority_is_above_having_started
                an_activity_may_have_a_priority_of_its_own
                a_delivered_turn_has_the_priority_of_its_run
                a_run_is_new_until_its_first_turn_is_committed
                what_becomes_ready_again_goes_behind
            }
            timer {
                a_timer_fires_once_and_not_before_its_time
                a_backoff_becomes_an_entry
                an_activity_in_backoff_becomes_ready
                a_timer_that_was_deleted_never_fires
                the_same_timer_id_fires_again_when_it_was_started_again
                a_timer_of_a_held_run_leaves_it_held
                a_timer_does_not_make_a_waiting_turn_ready
                a_sweep_is_bounded_and_says_that_more_is_due
                a_sweep_says_when_the_next_thing_is_due
                a_run_times_out_once
                schedule_to_start_passes_where_nobody_began
                schedule_to_start_is_met_by_a_claim
                schedule_to_start_is_met_by_an_attempt_that_was_lost
                schedule_to_start_passes_where_nothing_was_begun
                schedule_to_close_takes_the_row_whatever_its_state
                schedule_to_close_ends_the_claim
                schedule_to_close_passes_also_while_an_outcome_waits
                both_time_outs_of_an_activity_may_be_due_at_once
                a_clock_that_stands_still_delivers_nothing_twice
                a_clock_that_is_set_back_fires_nothing_early_or_twice
                very_long_delays_are_kept
            }
            lease {
                claims_of_a_silent_process_return_with_the_loss_noted
                a_beat_keeps_a_process_alive
                living_processes_lose_nothing_by_anothers_death
                nobody_is_declared_dead_where_the_sweeper_may_not
                a_sweeper_does_not_declare_itself_dead
                the_bound_on_silence_is_the_sweepers
                a_process_declared_dead_stays_dead
                a_draining_process_can_die_as_well
                a_process_that_left_is_not_declared_dead
                claims_that_a_bounded_sweep_left_return_in_the_next
                the_third_death_becomes_an_entry_with_all_losses
                an_activity_may_have_its_own_bound_on_deaths
                deaths_recorded_before_count
                graceful_stops_are_free
                losses_are_gone_once_a_commit_recorded_them
                a_lost_turn_is_ready_again_with_the_loss_noted
                a_turn_is_never_lost_for_good
                a_turn_is_lost_after_its_deadline_though_its_process_lives
                a_holders_commit_renews_the_turns_deadline
                cancelling_rows_of_a_dead_process_go
                returns_are_bounded_and_go_on
                an_unstarted_hand_back_before_a_death_counts_nothing
                a_clock_that_is_set_back_kills_nobody_and_keeps_nobody_alive
            }
            timeout {
                an_attempt_that_takes_too_long_becomes_an_entry
                an_attempt_may_take_ten_minutes_by_default
                neither_beats_nor_heartbeats_prolong_an_attempt
                a_silent_attempt_times_out_with_its_last_details
                the_first_heartbeat_is_due_from_the_claim_on
                without_heartbeats_silence_is_no_time_out
                once_used_the_heartbeat_is_due_every_thirty_seconds
                the_next_attempt_begins_without_the_heartbeat_of_the_last
                every_attempt_that_times_out_has_an_entry_of_its_own
                a_time_out_carries_the_losses_before_it
                a_dead_process_and_a_time_out_at_once_count_once
                a_cancelling_task_goes_when_its_time_is_over
                time_outs_are_bounded_and_go_on
            }
            heartbeat {
                a_beat_is_in_the_registry
                a_beat_of_one_that_is_gone_is_refused
                a_beat_that_comes_after_a_later_one_changes_nothing
                a_draining_process_goes_on_beating
                a_beat_says_which_claims_are_lost_or_cancelled
                a_claim_whose_answer_was_lost_is_told_in_full
                a_claim_that_three_beats_did_not_name_goes_back_uncounted
                a_turn_that_three_beats_did_not_name_goes_back
                a_claim_that_is_named_again_is_not_given_back
                a_cancelling_claim_that_is_not_named_stays
                a_beat_tells_which_held_runs_have_unread_entries
                details_are_what_was_said_last
                details_survive_a_loss
                details_survive_a_retry_in_place
                details_are_not_for_another_activity_at_the_place
                a_heartbeat_of_a_cancelled_task_is_ignored
                a_holder_beats_for_its_turn_without_renewing_it
            }
            ask {
                an_answer_names_what_stands_and_what_is_cancelled
                a_question_is_no_beat
                nobody_has_nothing
            }
            hand_back {
                what_was_not_begun_counts_for_nothing
                what_was_stopped_is_an_attempt_but_no_death
                a_turn_goes_back_without_a_death
                a_cancelled_task_goes_when_its_worker_lets_go
                only_a_cancelled_task_is_confirmed_away
                claims_of_a_batch_that_do_not_stand_are_ignored
                a_process_that_leaves_gives_everything_back
                leaving_twice_or_unknown_is_nothing
                a_draining_process_keeps_what_it_has_and_claims_no_more
                a_turn_that_goes_back_keeps_the_losses_before
            }
            park {
                a_parked_run_waits_and_says_why
                a_parked_run_comes_back_after_its_delay
                times_in_a_row_are_counted
                a_cancel_makes_a_parked_run_ready_and_a_signal_does_not
                a_new_process_makes_parked_runs_of_its_types_due
                a_parked_run_without_a_version_is_due_for_any_host
                a_new_process_does_not_hurry_delayed_starts
                a_new_process_leaves_ready_and_claimed_turns_as_they_are
                who_does_not_hold_the_run_does_not_park_it
                nobody_holds_a_parked_run
                an_operator_makes_a_parked_run_ready
                losses_of_a_parked_run_stay_until_a_turn_records_them
            }
            dead_letter {
                a_dead_letter_of_a_commit_is_kept
                dead_letters_are_listed_newest_first
                entries_read_after_the_end_become_dead_letters
                ending_anyway_makes_newer_signals_dead_letters
                only_signals_become_dead_letters
                ending_anyway_over_nothing_newer_leaves_none
                going_on_leaves_newer_signals_in_the_inbox
                an_operator_that_ends_a_run_keeps_its_signals
            }
            cancel {
                a_task_that_nobody_has_goes_at_once
                a_claimed_task_becomes_cancelling_and_accepts_no_result
                cancelling_twice_is_cancelling_once
                a_deletion_takes_a_task_whatever_its_state
                the_end_of_a_run_leaves_cancelling_tasks_only
                a_cancelling_row_that_is_put_anew_is_a_new_task
            }
            load {
                a_run_is_loaded_with_all_that_a_turn_needs
                an_unknown_run_is_none
                events_are_loaded_in_pages
                only_newer_events_are_loaded
                a_load_hands_out_a_bounded_part_of_the_inbox
            }
            look_up {
                a_commit_is_found_by_its_id
                a_commit_is_found_in_its_own_run_alone
                a_commit_that_was_refused_is_not_found
                a_commit_is_found_after_the_end
            }
            find {
                an_unknown_run_is_none
                runs_are_listed_newest_first
                the_order_is_that_of_ids
                runs_are_listed_in_pages
                filters_narrow_and_work_together
                a_run_is_found_by_its_key
                a_history_is_read_in_pages
                rows_of_a_run_are_listed_by_place
                processes_are_listed_newest_first
                an_inbox_is_read_in_pages
                what_the_tables_hold_is_counted_by_id
            }
            key {
                the_same_id_is_the_same_run
                the_same_key_is_the_same_run
                another_input_or_workflow_under_a_key_is_told
                a_key_is_of_one_tenant
                without_a_key_every_start_is_a_run
                keys_are_compared_exactly
                a_key_is_known_after_the_run_has_ended
                one_key_twice_in_a_batch_is_one_run
                a_refused_start_takes_no_key
                a_known_run_may_have_gone_on
            }
            payload {
                json_comes_back_byte_for_byte
                payloads_may_be_as_large_as_the_limit
                names_are_kept_and_told_apart
                names_of_processes_are_kept
                long_texts_are_kept
            }
            concurrency {
                many_claimers_never_get_the_same_task
                a_claim_call_made_twice_at_once_gives_the_same_tasks
                of_many_commits_on_one_head_exactly_one_wins
                of_many_ends_of_one_claim_exactly_one_wins
                no_acknowledged_signal_vanishes_at_the_end
                starts_with_one_key_make_one_run
                deliveries_are_gapless_and_in_order_per_sender
                one_id_delivered_by_many_is_one_entry
                sweeps_at_once_fire_a_timer_once
                no_delivery_is_missed_by_a_holder_that_lets_go
                batches_over_the_same_runs_do_not_block_each_other
                what_one_handle_wrote_the_other_reads
            }
            eager {
                an_eager_task_begins_in_the_committers_hands
                only_what_is_asked_for_begins
                an_eager_task_is_timed_by_its_options
                an_eager_task_gives_no_hint_that_something_is_ready
                another_tenant_that_waits_comes_first
                a_higher_priority_that_waits_comes_first
                what_the_process_cannot_execute_is_no_obstacle
                a_turn_is_kept_unless_another_has_a_better_right
                a_non_holder_keeps_by_the_same_rule
                who_is_not_active_begins_nothing
                an_eager_task_with_a_delay_waits
                what_waits_is_judged_as_the_batch_begins
                a_place_put_anew_fences_the_claim_before
                a_row_that_is_written_over_counts_its_claims_on
                an_eager_claim_whose_answer_was_lost_goes_back
                an_eager_claim_of_a_dead_process_returns
                a_repeat_claims_nothing_again
                a_start_may_end_at_once
                a_decided_start_may_deliver_to_itself
                a_process_may_decide_turns_without_any_activity
            }
            step {
                an_outcome_with_any_part_of_its_claim_wrong_is_fenced
                a_step_with_any_part_of_its_claim_wrong_is_fenced
                a_step_on_another_head_is_a_conflict
                an_outcome_beside_a_holder_is_held
                a_step_hears_of_unread_entries
                the_last_step_takes_every_row
                a_step_unparks_the_run
                a_step_records_the_losses_before
                a_repeated_claim_does_not_find_the_next_task
                what_a_task_said_last_stays_with_it_alone
                a_kept_turn_is_lost_by_the_last_step_that_moved_its_deadline
            }
            lead {
                the_first_to_ask_leads_and_others_follow
                who_asks_again_in_time_goes_on_in_its_term
                a_lease_that_is_over_is_taken_over_in_a_new_term
                one_that_comes_late_begins_a_new_term_itself
                one_that_leaves_hands_over_at_once
                one_that_drains_goes_on_and_does_not_begin
                who_is_gone_or_unknown_does_not_lead
                a_clock_that_was_set_back_keeps_nobody_out
                of_many_that_ask_at_once_one_leads
            }
            random {
                fixed_seeds_agree_with_memory
                a_fresh_seed_agrees_with_memory
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
