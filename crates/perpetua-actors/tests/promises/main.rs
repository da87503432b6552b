//! What the table of the page of promises (`docs/book/src/promises.md`) says, on each engine.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod counts;
mod delivery;
mod devices;
mod ends;
#[path = "../engines/mod.rs"]
mod engines;
mod faults;
mod handlers;
mod identity;
mod letters;
mod load;
mod replies;
mod room;
mod soak;

use std::time::{Duration, Instant};

use perpetua::actors::PerpetuaRuntime;
use perpetua::actors::runtime::RuntimeBuilder;

/// On the test's engine.
fn builder() -> RuntimeBuilder {
    // Kernels are compiled at first use, here and there by a busy machine.
    engines::other(PerpetuaRuntime::builder().ask_timeout(Duration::from_secs(300)))
}

fn runtime() -> PerpetuaRuntime {
    builder().build_blocking().unwrap()
}

fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(300);
    while !done() {
        assert!(Instant::now() < until, "not within five minutes: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The tests that a row, a paragraph or an item of the page names; `None` where it says that it promises nothing.
fn tests_of(block: &str) -> Option<Vec<&str>> {
    let last = block.trim_end_matches([' ', '|']);
    let named = match last.rsplit_once("<!--").map(|(_, comment)| comment.trim()) {
        Some("no promise -->") => return None,
        Some(comment) => comment
            .strip_prefix("test:")
            .and_then(|names| names.strip_suffix("-->")),
        None if block.starts_with('|') => last.rsplit_once('|').map(|(_, cell)| cell),
        None => None,
    };
    let named = named.unwrap_or_else(|| panic!("this names no test: {block}"));
    Some(
        named
            .split(',')
            .map(|name| name.trim().trim_matches('`'))
            .collect(),
    )
}

/// Rows, paragraphs and items of the page from its first table on; of paragraphs all lines as one.
fn blocks_of(page: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut goes_on = false;
    let lines = page.lines().skip_while(|line| !line.starts_with('|'));
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        let starts_table = line.starts_with('|') && lines.peek().is_some_and(|next| next.starts_with("|---"));
        if line.is_empty() || line.starts_with(['#']) || line.starts_with("|---") || starts_table {
            goes_on = false;
        } else if goes_on && !line.starts_with("- ") && !line.starts_with('|') {
            let block = blocks.last_mut().unwrap();
            *block += " ";
            *block += line.trim();
        } else {
            blocks.push(line.to_owned());
            goes_on = true;
        }
    }
    blocks
}

fn each_promise_of_the_page_has_its_tests() {
    let blocks = blocks_of(include_str!("../../../../docs/book/src/promises.md"));
    let named: Vec<Vec<&str>> = blocks.iter().filter_map(|block| tests_of(block)).collect();
    assert!(named.len() > 50, "{} promises", named.len());
    let is_test = |name: &str| TESTS.iter().any(|(test, _)| *test == name);
    for name in named.iter().flatten() {
        assert!(is_test(name), "`{name}` of the page is no test");
    }
    for (test, _) in &TESTS[1..] {
        assert!(
            named.iter().flatten().any(|name| name == test),
            "nothing on the page names `{test}`"
        );
    }
}

fn main() -> std::process::ExitCode {
    engines::run_everywhere(TESTS)
}

const TESTS: &[(&str, fn())] = &[
    (
        "each_promise_of_the_page_has_its_tests",
        each_promise_of_the_page_has_its_tests,
    ),
    (
        "each_accepted_message_is_handled_once_or_reported",
        soak::each_accepted_message_is_handled_once_or_reported,
    ),
    (
        "messages_are_handled_in_the_order_of_sending",
        delivery::messages_are_handled_in_the_order_of_sending,
    ),
    (
        "an_answer_comes_before_further_replies",
        replies::an_answer_comes_before_further_replies,
    ),
    ("a_fault_is_a_transaction", faults::a_fault_is_a_transaction),
    (
        "what_came_before_a_fault_stands",
        faults::what_came_before_a_fault_stands,
    ),
    (
        "a_restart_goes_on_with_what_the_fault_has_left",
        faults::a_restart_goes_on_with_what_the_fault_has_left,
    ),
    (
        "vectors_stay_with_the_message_that_faulted",
        faults::vectors_stay_with_the_message_that_faulted,
    ),
    (
        "a_letter_sent_again_finds_its_room",
        letters::a_letter_sent_again_finds_its_room,
    ),
    (
        "vectors_stay_with_a_message_whose_handler_does_not_end",
        letters::vectors_stay_with_a_message_whose_handler_does_not_end,
    ),
    (
        "a_group_faults_as_one_lane_does",
        faults::a_group_faults_as_one_lane_does,
    ),
    (
        "a_handler_that_does_not_end_is_undone",
        faults::a_handler_that_does_not_end_is_undone,
    ),
    (
        "what_takes_long_is_handled_once",
        faults::what_takes_long_is_handled_once,
    ),
    (
        "a_checkpoint_loses_nothing_under_load",
        load::a_checkpoint_loses_nothing_under_load,
    ),
    ("nothing_dies_under_load", load::nothing_dies_under_load),
    (
        "actors_that_fill_each_others_boxes_go_on",
        load::actors_that_fill_each_others_boxes_go_on,
    ),
    (
        "what_found_no_room_is_in_the_checkpoint",
        load::what_found_no_room_is_in_the_checkpoint,
    ),
    (
        "a_thousand_actors_are_restored_together",
        load::a_thousand_actors_are_restored_together,
    ),
    (
        "types_and_handlers_are_told_apart",
        identity::types_and_handlers_are_told_apart,
    ),
    (
        "what_is_drained_has_handled_what_it_got",
        load::what_is_drained_has_handled_what_it_got,
    ),
    (
        "counters_count_what_took_effect",
        counts::counters_count_what_took_effect,
    ),
    (
        "a_full_outbox_is_told_and_counted",
        counts::a_full_outbox_is_told_and_counted,
    ),
    (
        "an_answer_that_comes_too_late_is_a_dead_letter",
        counts::an_answer_that_comes_too_late_is_a_dead_letter,
    ),
    (
        "a_message_is_delivered_until_its_handler_returns",
        delivery::a_message_is_delivered_until_its_handler_returns,
    ),
    (
        "a_transaction_is_delivered_again_whole",
        delivery::a_transaction_is_delivered_again_whole,
    ),
    (
        "a_message_says_itself_how_often_it_is_delivered",
        delivery::a_message_says_itself_how_often_it_is_delivered,
    ),
    (
        "a_restart_by_hand_delivers_again",
        delivery::a_restart_by_hand_delivers_again,
    ),
    (
        "no_deadline_ends_a_message_whose_handler_has_begun",
        delivery::no_deadline_ends_a_message_whose_handler_has_begun,
    ),
    (
        "what_is_published_is_delivered_until_its_handler_returns",
        delivery::what_is_published_is_delivered_until_its_handler_returns,
    ),
    (
        "what_a_checkpoint_holds_is_delivered_again",
        delivery::what_a_checkpoint_holds_is_delivered_again,
    ),
    (
        "actors_of_two_devices_reach_each_other",
        devices::actors_of_two_devices_reach_each_other,
    ),
    (
        "a_full_mailbox_holds_its_sender",
        devices::a_full_mailbox_holds_its_sender,
    ),
    (
        "a_full_mailbox_on_another_device_holds_its_sender",
        devices::a_full_mailbox_on_another_device_holds_its_sender,
    ),
    (
        "a_launch_leaves_and_another_comes_in_its_place",
        devices::a_launch_leaves_and_another_comes_in_its_place,
    ),
    (
        "vectors_reach_actors_of_another_device",
        devices::vectors_reach_actors_of_another_device,
    ),
    (
        "a_busy_runtime_leaves_others_their_turn",
        devices::a_busy_runtime_leaves_others_their_turn,
    ),
    (
        "a_checkpoint_holds_two_devices_at_one_moment",
        devices::a_checkpoint_holds_two_devices_at_one_moment,
    ),
    (
        "outputs_that_nobody_can_take_are_dead_letters",
        room::outputs_that_nobody_can_take_are_dead_letters,
    ),
    (
        "replies_that_nobody_receives_hold_their_sender",
        room::replies_that_nobody_receives_hold_their_sender,
    ),
    (
        "replies_that_nobody_receives_are_dead_letters_in_the_end",
        room::replies_that_nobody_receives_are_dead_letters_in_the_end,
    ),
    (
        "a_reply_that_its_actor_does_not_take_is_counted",
        room::a_reply_that_its_actor_does_not_take_is_counted,
    ),
    (
        "a_subscriber_that_went_away_holds_nobody",
        room::a_subscriber_that_went_away_holds_nobody,
    ),
    (
        "a_subscription_by_number_reaches_its_actor",
        room::a_subscription_by_number_reaches_its_actor,
    ),
    ("dropped_subscriptions_end", room::dropped_subscriptions_end),
    (
        "what_is_deactivated_stays_so_or_its_fault_is_told",
        ends::what_is_deactivated_stays_so_or_its_fault_is_told,
    ),
    (
        "who_sees_a_fault_finds_its_letter",
        ends::who_sees_a_fault_finds_its_letter,
    ),
    (
        "what_is_given_a_state_stays_where_it_is",
        ends::what_is_given_a_state_stays_where_it_is,
    ),
    (
        "what_many_are_told_is_done_by_all_who_can",
        ends::what_many_are_told_is_done_by_all_who_can,
    ),
    (
        "an_actor_that_awaits_its_restart_comes_back_and_is_restarted",
        ends::an_actor_that_awaits_its_restart_comes_back_and_is_restarted,
    ),
    (
        "what_waits_for_an_actor_that_ends_is_in_the_checkpoint",
        ends::what_waits_for_an_actor_that_ends_is_in_the_checkpoint,
    ),
    (
        "a_shutdown_handles_what_was_sent",
        ends::a_shutdown_handles_what_was_sent,
    ),
    (
        "a_killed_process_goes_on_from_its_last_checkpoint",
        ends::a_killed_process_goes_on_from_its_last_checkpoint,
    ),
    (
        "clocks_of_runtimes_are_told_apart",
        identity::clocks_of_runtimes_are_told_apart,
    ),
    (
        "types_of_one_name_and_layout_are_told_apart",
        identity::types_of_one_name_and_layout_are_told_apart,
    ),
    (
        "replies_are_matched_by_their_correlation",
        identity::replies_are_matched_by_their_correlation,
    ),
    (
        "what_has_changed_since_a_checkpoint_is_migrated_or_refused",
        identity::what_has_changed_since_a_checkpoint_is_migrated_or_refused,
    ),
];
