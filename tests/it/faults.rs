//! Faults that the server must survive, and the tests that prove it.
//!
//! The table names each fault with its tests; it is true: every test that it names exists. Those that need root, a control
//! group or a mount say so where they cannot have it. Brief in the suite, long with `KPTY_SOAK` in `scripts/soak`.

mod machine;
mod shells;
mod soak;

use std::fs;

use crate::support::repository;

/// A fault, and its tests by module and name. Without any it is not injected, for the reason that is given.
type Fault = (&'static str, &'static str, Result<&'static [&'static str], &'static str>);

#[rustfmt::skip]
const FAULTS: [Fault; 52] = [
    ("F01", "killed while idle", Ok(&["serve::a_server_that_is_killed_leaves_no_shell_behind", "persistence::shells_that_outlive_a_killed_server_are_ended_by_the_next"])),
    ("F02", "killed during talks", Ok(&["traffic::killed::a_killed_server_has_recorded_every_command_that_it_typed", "persistence::a_server_that_is_killed_while_it_writes_leaves_only_whole_files"])),
    ("F03", "TERM under load", Ok(&["life::a_busy_server_is_gone_five_seconds_after_it_was_asked", "serve::a_server_that_is_asked_to_end_takes_everything_along"])),
    ("F04", "TERM twice, INT, HUP", Ok(&["faults::machine::a_second_signal_ends_the_server_at_once", "serve::a_hang_up_ends_nothing"])),
    ("F05", "stopped and continued", Ok(&["faults::machine::a_server_that_stood_still_goes_on"])),
    ("F06", "the shell dies during a talk", Ok(&["faults::shells::a_shell_that_dies_in_the_middle_says_so_at_once"])),
    ("F07", "the shell is replaced during a talk", Ok(&["faults::shells::a_shell_that_is_replaced_stopped_or_deaf_is_a_timeout_and_can_be_killed"])),
    ("F08", "a child ignores HUP and TERM", Ok(&["faults::shells::a_shell_that_is_replaced_stopped_or_deaf_is_a_timeout_and_can_be_killed", "live::kill::nothing_is_left_of_killed_sessions"])),
    ("F09", "a grandchild keeps the terminal open", Ok(&["live::kill::nothing_is_left_of_sessions_that_end_by_themselves", "live::kill::a_flood_that_outlives_its_shell_does_not_keep_it_alive"])),
    ("F10", "a grandchild in a session of its own", Ok(&["live::kill::processes_that_left_the_session_are_named"])),
    ("F11", "a child stops itself", Ok(&["faults::shells::a_shell_that_is_replaced_stopped_or_deaf_is_a_timeout_and_can_be_killed"])),
    ("F12", "10,000 short children", Ok(&["faults::shells::thousands_of_short_children_leave_no_zombie"])),
    ("F13", "fork bomb under a process limit", Ok(&["faults::machine::where_no_process_can_be_started_the_server_stays"])),
    ("F14", "a child never reads", Ok(&["live::queries::input_that_nobody_reads_fails_in_time"])),
    ("F15", "floods in 50 sessions", Ok(&["faults::machine::fifty_floods_leave_the_server_free"])),
    ("F16", "two talks in one session", Ok(&["live::turns::a_second_talk_waits_its_turn"])),
    ("F17", "read, resize, kill during a talk", Ok(&["faults::shells::whatever_is_done_during_a_talk_is_answered_and_a_kill_ends_it"])),
    ("F18", "a client goes away during a talk", Ok(&["live::turns::a_talk_that_nobody_waits_for_leaves_the_session_usable", "live::turns::a_talk_that_is_dropped_at_any_moment_spoils_nothing"])),
    ("F19", "200 talks in 200 sessions", Ok(&["live::many::many_sessions_at_once_are_not_mixed_up"])),
    ("F20", "disk full", Ok(&["persistence::linux::a_full_disk_stops_nothing_and_is_forgotten_when_there_is_room"])),
    ("F21", "state folder read-only", Ok(&["persistence::linux::a_folder_that_cannot_be_written_stops_nothing"])),
    ("F22", "state folder removed", Ok(&["store::tests::a_folder_that_was_removed_is_made_again", "traffic::tests::a_damaged_file_is_set_aside_and_a_missing_one_made_again"])),
    ("F23", "registry cut at every byte", Ok(&["store::snapshot::tests::a_damaged_file_is_read_as_far_as_it_makes_sense_or_set_aside"])),
    ("F24", "registry with flipped bits", Ok(&["store::snapshot::tests::every_entry_that_can_be_read_comes_back"])),
    ("F25", "hostile registry", Ok(&["store::snapshot::tests::a_hostile_file_is_given_up_soon", "store::snapshot::tests::an_entry_that_makes_no_sense_costs_only_itself"])),
    ("F26", "event log ends in half a line", Ok(&["store::journal::tests::half_a_line_does_not_spoil_the_next"])),
    ("F27", "the n-th system call fails", Err("no layer makes single system calls fail. Files are replaced whole by a rename, so any error leaves the old one; a full disk, a folder that cannot be written and kills at any moment are injected (F02, F20, F21)")),
    ("F28", "planted links", Ok(&["persistence::planted_links_lead_nowhere"])),
    ("F29", "two servers on one folder", Ok(&["persistence::a_second_server_on_the_same_folder_is_refused"])),
    ("F30", "port in use", Ok(&["life::a_port_that_is_taken_is_named_with_the_setting_for_another"])),
    ("F31", "bridge down", Ok(&["desktop::faults::nobody_there_is_said_at_once"])),
    ("F32", "bridge never answers", Ok(&["desktop::faults::a_bridge_that_hangs_keeps_only_its_own_callers_waiting", "desktop::faults::no_call_outlasts_its_timeout_by_more_than_half_a_second"])),
    ("F33", "bridge answers garbage", Ok(&["desktop::faults::every_bad_answer_has_its_code_and_the_next_call_is_well"])),
    ("F34", "bridge answers without end", Ok(&["desktop::faults::every_bad_answer_has_its_code_and_the_next_call_is_well"])),
    ("F35", "bridge answers with secrets and controls", Ok(&["leaks::no_surface_of_a_desktops_session_shows_a_secret", "terminal::desktop::wire::tests::lines_have_no_control_characters"])),
    ("F36", "gateway down, slow, failing", Ok(&["traffic::a_gateway_is_told_and_one_that_is_slow_or_absent_delays_nobody"])),
    ("F37", "name service hangs", Ok(&["registry::bridge_url::tests::bridges_on_this_machine_are_taken_in_their_plain_form"])),
    ("F38", "wall clock jumps", Err("no clock is injected. Timeouts and limits use the monotonic clock; stamps are only shown, and ages of the future count as none (tests of the registry's records and of the traffic log)")),
    ("F39", "1,000 sessions", Ok(&["live::many::many_sessions_at_once_are_not_mixed_up", "live::idle::idle_sessions_use_no_cpu"])),
    ("F40", "10,000 sessions made and killed", Ok(&["live::kill::nothing_is_left_of_killed_sessions"])),
    ("F41", "few descriptors", Ok(&["slow::there_are_descriptors_left_for_the_owner"])),
    ("F42", "no terminals left", Ok(&["faults::machine::without_a_free_terminal_a_create_says_so"])),
    ("F43", "process limit reached", Ok(&["faults::machine::where_no_process_can_be_started_the_server_stays"])),
    ("F44", "20 hostile sessions in 256 MB", Ok(&["faults::machine::twenty_hostile_sessions_have_room_in_little_memory"])),
    ("F45", "shells that do not start", Ok(&["faults::shells::a_shell_that_does_not_start_leaves_no_session"])),
    ("F46", "start-up files that block or print", Ok(&["talk::adverse_cases_are_right_with_start_up_files", "live::promise::a_shell_that_takes_long_to_start_is_not_waited_for_longer"])),
    ("F47", "working folder removed", Ok(&["faults::shells::a_folder_that_is_gone_and_an_odd_locale_spoil_nothing"])),
    ("F48", "slow and idle clients", Ok(&["slow::five_hundred_half_heads_of_another_user_cost_little_and_delay_nobody", "slow::idle_connections_of_our_own_do_no_harm", "traffic::socket::a_listener_that_does_not_read_holds_up_nobody"])),
    ("F49", "malformed requests", Ok(&["access::two_thousand_broken_requests_do_no_harm"])),
    ("F50", "resize storm", Ok(&["hostile::sizes_that_change_all_the_time_spoil_nothing"])),
    ("F51", "odd locale, no TERM", Ok(&["faults::shells::a_folder_that_is_gone_and_an_odd_locale_spoil_nothing"])),
    ("F52", "mixed load for long", Ok(&["faults::soak::a_mixed_load_leaves_memory_flat"])),
];

/// The text of the module that a test is in: of the integration tests, or of the program.
fn module_of(test: &str) -> String {
    let path: Vec<_> = test.split("::").filter(|part| !["linux", "tests"].contains(part)).collect();
    let path = path[..path.len() - 1].join("/");
    let root = repository();
    let ends = [".rs", "/mod.rs", "/tests.rs"].map(|end| format!("{path}{end}"));
    let files = ["tests/it", "src"].iter().flat_map(|top| ends.iter().map(move |end| root.join(top).join(end)));
    files.filter_map(|file| fs::read_to_string(file).ok()).collect()
}

#[test]
fn every_fault_has_its_tests() {
    let injected = FAULTS.iter().filter(|(_, _, tests)| tests.is_ok()).count();
    assert!(injected >= 50, "{injected}");
    for (index, (id, fault, tests)) in FAULTS.iter().enumerate() {
        assert_eq!(*id, format!("F{:02}", index + 1));
        for test in tests.unwrap_or_default() {
            let name = test.rsplit("::").next().expect("a name");
            assert!(module_of(test).contains(&format!("fn {name}(")), "{id}, {fault}: there is no {test}");
        }
    }
}
