//! What every database must do for the log. Each case gets a log of its own.

pub(crate) mod documents;
pub(crate) mod large;
pub(crate) mod order;
pub(crate) mod records;
pub(crate) mod streams;
pub(crate) mod transfer;

/// Makes a test of each case, with the log that `$with` opens and afterwards removes.
macro_rules! suite {
    ($with:path $(, #[$attribute:meta])?) => {
        suite!(@ $with, ($(#[$attribute])?),
            documents::a_document_is_written_only_as_expected,
            documents::a_document_has_a_limit,
            documents::of_many_writers_with_the_same_expectation_one_wins,
            documents::documents_are_chosen_by_a_text_and_come_in_pages,
            large::a_reference_cannot_be_forged,
            large::el_10_payloads_of_every_size_come_back,
            large::el_10_blobs_go_with_the_last_session_that_uses_them,
            large::el_10_a_page_is_bounded_by_bytes,
            order::el_7_numbers_have_no_gaps_with_64_writers,
            order::el_7_many_writers_of_one_session_share_one_chain,
            order::el_7_an_entry_with_a_known_key_is_not_written_again,
            order::el_7_of_equal_keys_at_once_one_is_written,
            records::a_record_comes_back_as_it_was_written,
            records::el_1_each_record_names_the_one_before_it,
            records::answers_and_unanswered_actions_are_found,
            records::a_removed_session_is_gone_and_its_name_is_free,
            records::el_8_a_quota_stops_actions_before_observations,
            records::a_closed_log_refuses_everything,
            records::strange_texts_come_back,
            records::an_action_has_one_observation,
            streams::el_7_a_subscription_sees_each_record_once_in_order,
            streams::a_subscription_from_any_number_waits_for_what_is_not_there,
            streams::a_dropped_wait_loses_nothing,
            streams::sn_4_a_subscription_does_not_read_on_in_another_log_of_the_same_name,
            streams::removal_and_close_end_subscriptions,
            transfer::an_exported_log_can_be_read_in_again,
            transfer::el_1_an_import_that_does_not_fit_is_refused,
            transfer::openhands_finds_its_event_files,
        );
    };
    (@ $with:path, $attributes:tt, $($module:ident::$case:ident,)*) => {
        $(suite!(@one $with, $attributes, $module, $case);)*
    };
    (@one $with:path, ($(#[$attribute:meta])?), $module:ident, $case:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $(#[$attribute])?
        async fn $case() {
            $with(|log| async move { crate::suite::$module::$case(&log).await }).await;
        }
    };
}
pub(crate) use suite;
