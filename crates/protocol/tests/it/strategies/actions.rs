//! Random actions of every type.

use proptest::{option, prelude::*, sample::select};
use serde_json::Value;
use zareba_protocol::{
    Action, BrowseInteractive, BrowseUrl, CallTool, ChangeAgentState, Condensation,
    ConfirmationState, Delegate, EditFile, EditSource, FindFiles, Finish, LoopRecovery, ReadFile,
    ReadSource, Recall, Reject, RunCell, RunCommand, SearchFiles, SecurityRisk, SendMessage,
    SystemMessage, Think, TrackTasks, UseTool, WriteFile,
};

use super::{agent_state, json, object, recall_kind, text, texts};

pub(super) fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        shell_action(),
        file_action(),
        outward_action(),
        talk_action(),
        state_action()
    ]
}

fn shell_action() -> BoxedStrategy<Action> {
    let flags = any::<[bool; 4]>();
    let run = (
        text(),
        text(),
        flags,
        option::of(text()),
        confirmation(),
        risk(),
    )
        .prop_map(
            |(
                command,
                thought,
                [is_input, blocking, is_static, hidden],
                cwd,
                confirmation_state,
                security_risk,
            )| {
                RunCommand {
                    command,
                    is_input,
                    thought,
                    blocking,
                    is_static,
                    cwd,
                    hidden,
                    confirmation_state,
                    security_risk,
                }
            },
        );
    let cell = (
        text(),
        text(),
        any::<bool>(),
        confirmation(),
        risk(),
        text(),
    )
        .prop_map(
            |(
                code,
                thought,
                include_extra,
                confirmation_state,
                security_risk,
                kernel_init_code,
            )| {
                RunCell {
                    code,
                    thought,
                    include_extra,
                    confirmation_state,
                    security_risk,
                    kernel_init_code,
                }
            },
        );
    prop_oneof![run.prop_map(Action::Run), cell.prop_map(Action::RunIpython)].boxed()
}

fn file_action() -> BoxedStrategy<Action> {
    let read_source = select(vec![ReadSource::Plain, ReadSource::Editor]);
    let view_range = option::of(prop::collection::vec(any::<i64>(), 0..3));
    let read = (
        text(),
        any::<[i64; 2]>(),
        text(),
        risk(),
        read_source,
        view_range,
    )
        .prop_map(
            |(path, [start, end], thought, security_risk, impl_source, view_range)| ReadFile {
                path,
                start,
                end,
                thought,
                security_risk,
                impl_source,
                view_range,
            },
        );
    let write = (text(), text(), any::<[i64; 2]>(), text(), risk()).prop_map(
        |(path, content, [start, end], thought, security_risk)| WriteFile {
            path,
            content,
            start,
            end,
            thought,
            security_risk,
        },
    );
    let texts = [option::of(text()), option::of(text()), option::of(text())];
    let line = option::of(prop_oneof![
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from)
    ]);
    let edit_source = select(vec![EditSource::Editor, EditSource::Draft]);
    let edit = (
        [text(), text(), text(), text()],
        texts,
        line,
        any::<[i64; 2]>(),
        risk(),
        edit_source,
    )
        .prop_map(
            |(words, texts, insert_line, [start, end], security_risk, impl_source)| {
                let [path, command, content, thought] = words;
                let [file_text, old_str, new_str] = texts;
                EditFile {
                    path,
                    command,
                    file_text,
                    old_str,
                    new_str,
                    insert_line,
                    content,
                    start,
                    end,
                    thought,
                    security_risk,
                    impl_source,
                }
            },
        );
    let glob = (
        text(),
        option::of(text()),
        any::<bool>(),
        option::of(any::<u32>()),
        text(),
        risk(),
    )
        .prop_map(
            |(pattern, path, include_ignored, limit, thought, security_risk)| FindFiles {
                pattern,
                path,
                include_ignored,
                limit,
                thought,
                security_risk,
            },
        );
    let paths = [option::of(text()), option::of(text())];
    let grep = (
        text(),
        paths,
        any::<[bool; 2]>(),
        option::of(any::<u32>()),
        text(),
        risk(),
    )
        .prop_map(
            |(
                pattern,
                [path, include],
                [include_ignored, ignore_case],
                limit,
                thought,
                security_risk,
            )| {
                SearchFiles {
                    pattern,
                    path,
                    include,
                    include_ignored,
                    ignore_case,
                    limit,
                    thought,
                    security_risk,
                }
            },
        );
    prop_oneof![
        read.prop_map(Action::Read),
        write.prop_map(Action::Write),
        edit.prop_map(Action::Edit),
        glob.prop_map(Action::Glob),
        grep.prop_map(Action::Grep),
    ]
    .boxed()
}

fn outward_action() -> BoxedStrategy<Action> {
    let browse = (text(), text(), risk(), any::<bool>()).prop_map(
        |(url, thought, security_risk, return_axtree)| {
            Action::Browse(BrowseUrl {
                url,
                thought,
                security_risk,
                return_axtree,
            })
        },
    );
    let interact = ([text(), text(), text()], risk(), any::<bool>()).prop_map(
        |(
            [browser_actions, thought, browsergym_send_msg_to_user],
            security_risk,
            return_axtree,
        )| {
            Action::BrowseInteractive(BrowseInteractive {
                browser_actions,
                thought,
                browsergym_send_msg_to_user,
                security_risk,
                return_axtree,
            })
        },
    );
    let call =
        (text(), object(), text(), risk()).prop_map(|(name, arguments, thought, security_risk)| {
            Action::CallToolMcp(CallTool {
                name,
                arguments,
                thought,
                security_risk,
            })
        });
    let positional = prop::collection::vec(json(), 0..3);
    let tool = (text(), object(), positional, any::<bool>(), text(), risk()).prop_map(
        |(name, arguments, positional, unchecked, thought, security_risk)| {
            Action::CallTool(UseTool {
                name,
                arguments,
                positional,
                unchecked,
                thought,
                security_risk,
            })
        },
    );
    prop_oneof![browse, interact, call, tool].boxed()
}

fn talk_action() -> BoxedStrategy<Action> {
    let message = (text(), texts(), texts(), any::<bool>(), risk()).prop_map(
        |(content, file_urls, image_urls, wait_for_response, security_risk)| {
            Action::Message(SendMessage {
                content,
                file_urls,
                image_urls,
                wait_for_response,
                security_risk,
            })
        },
    );
    let tools = option::of(prop::collection::vec(json(), 0..3));
    let system = (text(), tools, option::of(text()), option::of(text())).prop_map(
        |(content, tools, openhands_version, agent_class)| {
            Action::System(SystemMessage {
                content,
                tools,
                openhands_version,
                agent_class,
            })
        },
    );
    let think = text().prop_map(|thought| Action::Think(Think { thought }));
    let finish = (text(), object(), text()).prop_map(|(final_thought, outputs, thought)| {
        Action::Finish(Finish {
            final_thought,
            outputs,
            thought,
        })
    });
    let reject = (object(), text())
        .prop_map(|(outputs, thought)| Action::Reject(Reject { outputs, thought }));
    let delegate = (text(), object(), text()).prop_map(|(agent, inputs, thought)| {
        Action::Delegate(Delegate {
            agent,
            inputs,
            thought,
        })
    });
    prop_oneof![message, system, think, finish, reject, delegate].boxed()
}

fn state_action() -> BoxedStrategy<Action> {
    let recall = (recall_kind(), text(), text()).prop_map(|(recall_type, query, thought)| {
        Action::Recall(Recall {
            recall_type,
            query,
            thought,
        })
    });
    let change = (agent_state(), text()).prop_map(|(agent_state, thought)| {
        Action::ChangeAgentState(ChangeAgentState {
            agent_state,
            thought,
        })
    });
    let ids = prop::collection::vec(any::<i64>(), 0..4).prop_map(|ids| Condensation {
        forgotten_event_ids: Some(ids),
        ..Condensation::default()
    });
    let range = any::<[i64; 2]>().prop_map(|[start, end]| Condensation {
        forgotten_events_start_id: Some(start),
        forgotten_events_end_id: Some(end),
        ..Condensation::default()
    });
    let condensation = (prop_oneof![ids, range], option::of((text(), any::<i64>()))).prop_map(
        |(condensation, summary)| {
            let (summary, summary_offset) = summary.unzip();
            Action::Condensation(Condensation {
                summary,
                summary_offset,
                ..condensation
            })
        },
    );
    let tasks = (text(), prop::collection::vec(object(), 0..3), text()).prop_map(
        |(command, task_list, thought)| {
            Action::TaskTracking(TrackTasks {
                command,
                task_list,
                thought,
            })
        },
    );
    let recovery = any::<i64>().prop_map(|option| Action::LoopRecovery(LoopRecovery { option }));
    let plain = select(vec![Action::Null, Action::CondensationRequest]);
    prop_oneof![recall, change, condensation, tasks, recovery, plain].boxed()
}

fn risk() -> impl Strategy<Value = SecurityRisk> {
    select(vec![
        SecurityRisk::Unknown,
        SecurityRisk::Low,
        SecurityRisk::Medium,
        SecurityRisk::High,
    ])
}

fn confirmation() -> impl Strategy<Value = ConfirmationState> {
    select(vec![
        ConfirmationState::Confirmed,
        ConfirmationState::Rejected,
        ConfirmationState::AwaitingConfirmation,
    ])
}
