//! One suite for all backends: the same cases against every [`Runtime`].
//!
//! A backend's tests say how to make one of it and what it leaves, and get a test per case:
//!
//! ```ignore
//! async fn make() -> MyBackend { .. }
//! zareba_testkit::conformance_suite!(make);
//! ```
//!
//! Nothing here waits by time. Where two things must meet, they meet at a named pipe inside the
//! sandbox; where something happens in the background, its status is awaited.

pub mod environment;
pub mod files;
pub mod lifecycle;
pub mod shells;

mod trial;

use std::{future::Future, pin::Pin, time::Duration};

use zareba_runtime::Runtime;

pub use anyhow::Error as Failure;
pub use trial::Trial;

/// Longer than any case takes on a busy machine: a case that hangs fails.
const CASE_MAX: Duration = Duration::from_secs(120);

/// A backend under test.
pub trait Backend: Send + Sync {
    /// The runtime.
    fn runtime(&self) -> &dyn Runtime;

    /// What is left of sandboxes on this machine: processes, directories, whatever the backend
    /// makes. Programs inside carry `mark` in their environment. Empty when no sandbox is there.
    fn traces(&self, mark: &str) -> Vec<String>;
}

/// A case: what must hold, in the words of its name.
pub type Case =
    for<'a> fn(&'a Trial) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// Holds a backend to one case, and to leaving nothing behind.
///
/// # Errors
/// When the case fails, takes too long, or leaves something.
pub async fn hold(backend: impl Backend + 'static, case: Case) -> Result<(), Failure> {
    let trial = Trial::new(Box::new(backend));
    let outcome = tokio::time::timeout(CASE_MAX, case(&trial)).await;
    outcome.map_err(|_| anyhow::anyhow!("the case took longer than {CASE_MAX:?}"))??;
    let left = trial.traces();
    anyhow::ensure!(left.is_empty(), "left behind: {left:#?}");
    Ok(())
}

/// Makes a test of every case. Takes a function that makes a [`Backend`]; the calling crate
/// needs `tokio`.
#[macro_export]
macro_rules! conformance_suite {
    ($make:path) => {
        $crate::conformance_cases! { $make:
            lifecycle::a_new_sandbox_is_ready_and_knows_its_place
            lifecycle::closing_twice_is_no_error
            lifecycle::statuses_come_in_order
            lifecycle::nothing_can_be_done_after_closing
            lifecycle::closing_stops_an_action_under_way
            lifecycle::closing_ends_everything_inside
            lifecycle::a_dropped_handle_closes_in_the_background
            lifecycle::two_sandboxes_share_nothing
            lifecycle::a_given_workspace_is_used_and_stays
            lifecycle::a_spec_with_a_bad_variable_is_refused
            lifecycle::what_a_backend_cannot_do_it_says
            lifecycle::a_sandbox_is_found_again_where_that_is_promised
            shells::state_is_kept_between_commands
            shells::exit_codes_are_told
            shells::a_silent_command_is_told_of_and_takes_input
            shells::a_command_outlives_its_timeout
            shells::keys_reach_the_running_program
            shells::shells_run_at_the_same_time
            shells::actions_on_one_shell_run_in_the_order_they_were_asked_for
            shells::many_actions_at_once_are_each_answered
            shells::a_dropped_future_does_not_wedge_the_shell
            shells::a_shell_that_ends_is_replaced
            shells::long_output_is_cut_in_the_middle_and_kept_whole
            shells::text_of_any_language_passes
            shells::an_action_that_nobody_can_perform_is_answered
            files::a_file_is_written_read_and_edited
            files::files_are_read_while_a_command_runs
            files::directories_are_listed
            files::a_directory_is_copied_both_ways
            files::one_file_is_copied_both_ways
            files::what_is_not_there_cannot_be_copied
            environment::variables_of_the_spec_reach_every_shell
            environment::added_variables_are_taken_as_they_are
            environment::added_variables_reach_every_shell_and_program
            environment::a_busy_shell_gets_variables_with_its_next_command
        }
    };
}

/// One test per case; written by [`conformance_suite`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($make:path: $($group:ident::$case:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() -> ::std::result::Result<(), $crate::conformance::Failure> {
                let backend = $make().await;
                let case: $crate::conformance::Case =
                    |trial| ::std::boxed::Box::pin($crate::conformance::$group::$case(trial));
                $crate::conformance::hold(backend, case).await
            }
        )+
    };
}
