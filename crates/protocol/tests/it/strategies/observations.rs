//! Random observations of every type.

use proptest::{collection, option, prelude::*, sample::select};
use serde_json::json;
use zareba_protocol::{
    Browsed, CommandMetadata, CommandOutput, EditSource, Edited, ErrorClass, FilesFound, LimitHit,
    LimitKind, MatchesFound, ObservationKind, ReadSource, Recalled, ToolFailure, ToolOutcome,
};

use super::{agent_state, json, name, object, recall_kind, text, texts};

pub(super) fn observation_kind() -> BoxedStrategy<ObservationKind> {
    let plain = select(vec![
        ObservationKind::Null,
        ObservationKind::Success,
        ObservationKind::UserRejected,
        ObservationKind::Condense,
        ObservationKind::Think,
        ObservationKind::LoopDetection,
    ]);
    let cell = (text(), texts())
        .prop_map(|(code, image_urls)| ObservationKind::RunIpython { code, image_urls });
    let read_source = select(vec![ReadSource::Plain, ReadSource::Editor]);
    let read = (text(), read_source)
        .prop_map(|(path, impl_source)| ObservationKind::Read { path, impl_source });
    let write = text().prop_map(|path| ObservationKind::Write { path });
    let download = text().prop_map(|file_path| ObservationKind::Download { file_path });
    let error = text().prop_map(|error_id| ObservationKind::Error { error_id });
    let tool =
        (text(), object()).prop_map(|(name, arguments)| ObservationKind::Mcp { name, arguments });
    let state = (agent_state(), text()).prop_map(|(agent_state, reason)| {
        ObservationKind::AgentStateChanged {
            agent_state,
            reason,
        }
    });
    let delegate = object().prop_map(|outputs| ObservationKind::Delegate { outputs });
    let tasks = (text(), prop::collection::vec(object(), 0..3))
        .prop_map(|(command, task_list)| ObservationKind::TaskTracking { command, task_list });
    let small = prop_oneof![
        cell, read, write, download, error, tool, state, delegate, tasks
    ];
    prop_oneof![
        plain,
        small,
        command_output(),
        edited(),
        found(),
        tool_outcome(),
        browsed(),
        recalled()
    ]
    .boxed()
}

fn limit_hit() -> impl Strategy<Value = LimitHit> {
    let kind = prop_oneof![
        Just(LimitKind::TimedOut),
        Just(LimitKind::Truncated),
        Just(LimitKind::OomKilled),
        Just(LimitKind::PidsLimit),
        Just(LimitKind::DiskQuotaExceeded),
    ];
    (kind, text()).prop_map(|(kind, message)| LimitHit { kind, message })
}

fn command_output() -> BoxedStrategy<ObservationKind> {
    let known = [
        option::of(text()),
        option::of(text()),
        option::of(text()),
        option::of(text()),
    ];
    let bytes = [option::of(any::<u64>()), option::of(any::<u64>())];
    let limits = collection::vec(limit_hit(), 0..3);
    let ours = (
        bytes,
        option::of(text()),
        option::of(text()),
        any::<bool>(),
        limits,
    );
    let metadata = (any::<[i64; 2]>(), known, [text(), text()], ours).prop_map(
        |([exit_code, pid], known, [prefix, suffix], ours)| {
            let [username, hostname, working_dir, py_interpreter_path] = known;
            let ([output_bytes, output_dropped], output_file, signal, shell_restarted, limits) =
                ours;
            CommandMetadata {
                exit_code,
                pid,
                username,
                hostname,
                working_dir,
                py_interpreter_path,
                prefix,
                suffix,
                output_bytes,
                output_file,
                output_dropped,
                signal,
                shell_restarted,
                limits,
            }
        },
    );
    (text(), metadata, any::<bool>())
        .prop_map(|(command, metadata, hidden)| {
            ObservationKind::Run(CommandOutput {
                command,
                metadata,
                hidden,
            })
        })
        .boxed()
}

fn edited() -> BoxedStrategy<ObservationKind> {
    let contents = [option::of(text()), option::of(text()), option::of(text())];
    let source = select(vec![EditSource::Editor, EditSource::Draft]);
    (text(), any::<bool>(), contents, source)
        .prop_map(
            |(path, prev_exist, [old_content, new_content, diff], impl_source)| {
                ObservationKind::Edit(Edited {
                    path,
                    prev_exist,
                    old_content,
                    new_content,
                    impl_source,
                    diff,
                    diff_cache: None,
                })
            },
        )
        .boxed()
}

fn found() -> BoxedStrategy<ObservationKind> {
    let files = prop::collection::vec(text(), 0..4);
    let glob =
        (text(), text(), files, any::<bool>()).prop_map(|(path, pattern, files, truncated)| {
            ObservationKind::Glob(FilesFound {
                path,
                pattern,
                files,
                truncated,
            })
        });
    let grep = (text(), text(), any::<[u64; 2]>(), any::<bool>()).prop_map(
        |(path, pattern, [files, matches], truncated)| {
            ObservationKind::Grep(MatchesFound {
                path,
                pattern,
                files,
                matches,
                truncated,
            })
        },
    );
    prop_oneof![glob, grep].boxed()
}

fn tool_outcome() -> BoxedStrategy<ObservationKind> {
    let class = select(
        &[
            ErrorClass::Timeout,
            ErrorClass::Invalid,
            ErrorClass::Disconnected,
        ][..],
    );
    let error = (text(), class, text(), option::of(text())).prop_map(
        |(kind, class, message, traceback)| ToolFailure {
            kind,
            class,
            message,
            traceback,
        },
    );
    let words = [text(), text(), text()];
    let raw = option::of(text());
    (words, json(), raw, any::<bool>(), option::of(error))
        .prop_map(|([name, stdout, stderr], result, raw, truncated, error)| {
            ObservationKind::Tool(Box::new(ToolOutcome {
                name,
                result,
                raw,
                stdout,
                stderr,
                truncated,
                error,
            }))
        })
        .boxed()
}

fn browsed() -> BoxedStrategy<ObservationKind> {
    let words = [text(), text(), text(), text(), text(), text(), text()];
    let lists = (
        prop::collection::vec(json(), 0..2),
        prop::collection::vec(text(), 0..3),
    );
    let objects = [object(), object(), object()];
    (
        words,
        option::of(text()),
        any::<[bool; 2]>(),
        lists,
        any::<i64>(),
        objects,
    )
        .prop_map(
            |(words, screenshot_path, [error, filter_visible_only], lists, index, objects)| {
                let [
                    url,
                    trigger_by_action,
                    screenshot,
                    set_of_marks,
                    last,
                    last_error,
                    focused,
                ] = words;
                let (goal_image_urls, open_pages_urls) = lists;
                let [dom_object, axtree_object, extra_element_properties] = objects;
                ObservationKind::Browse(Box::new(Browsed {
                    url,
                    trigger_by_action,
                    screenshot,
                    screenshot_path,
                    set_of_marks,
                    error,
                    goal_image_urls,
                    open_pages_urls,
                    active_page_index: index,
                    dom_object,
                    axtree_object,
                    extra_element_properties,
                    last_browser_action: last,
                    last_browser_action_error: last_error,
                    focused_element_bid: focused,
                    filter_visible_only,
                }))
            },
        )
        .boxed()
}

fn recalled() -> BoxedStrategy<ObservationKind> {
    let words = prop::collection::vec(text(), 8);
    let hosts =
        prop::collection::btree_map(name(), any::<u16>().prop_map(|port| json!(port)), 0..3);
    let secrets = prop::collection::btree_map(name(), text(), 0..3);
    (
        recall_kind(),
        words,
        hosts,
        secrets,
        prop::collection::vec(json(), 0..2),
    )
        .prop_map(
            |(recall_type, words, runtime_hosts, custom_secrets_descriptions, knowledge)| {
                let word = |index: usize| words[index].clone();
                ObservationKind::Recall(Box::new(Recalled {
                    recall_type,
                    repo_name: word(0),
                    repo_directory: word(1),
                    repo_branch: word(2),
                    repo_instructions: word(3),
                    runtime_hosts,
                    additional_agent_instructions: word(4),
                    date: word(5),
                    custom_secrets_descriptions,
                    conversation_instructions: word(6),
                    working_dir: word(7),
                    microagent_knowledge: knowledge,
                }))
            },
        )
        .boxed()
}
