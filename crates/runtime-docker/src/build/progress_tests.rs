//! Tests of what becomes of an Engine's answer, with lines as Engines send them.

use std::sync::Mutex;

use serde_json::json;

use super::*;

fn read(lines: &[Value]) -> (Vec<BuildEvent>, Result<(), (String, String)>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    let mut reading = Reading::new(Arc::new(move |event: &BuildEvent| {
        listener.lock().unwrap().push(event.clone());
    }));
    for line in lines {
        reading.line(line);
    }
    let end = reading.end();
    let told = told.lock().unwrap().clone();
    (told, end)
}

fn step(position: Option<(u32, u32)>, text: &str, state: StepState) -> BuildEvent {
    let text = text.to_owned();
    BuildEvent::Step {
        position,
        text,
        state,
    }
}

#[test]
fn the_classic_builder_is_understood() {
    let (told, end) = read(&[
        json!({ "stream": "Step 1/3 : FROM a" }),
        json!({ "stream": "\n" }),
        json!({ "stream": " ---> d08e6243841d\n" }),
        json!({ "stream": "Step 2/3 : COPY f /f" }),
        json!({ "stream": " ---> Using cache\n" }),
        json!({ "stream": "Step 3/3 : RUN echo hi" }),
        json!({ "stream": " ---> Running in 8fc287538b9a\n" }),
        json!({ "stream": "hi\n" }),
        json!({ "stream": "Removing intermediate container 8fc287538b9a\n" }),
        json!({ "aux": { "ID": "sha256:e1" } }),
        json!({ "stream": "Successfully built e1\n" }),
    ]);
    assert_eq!(end, Ok(()));
    let output = BuildEvent::Output {
        text: "hi\n".to_owned(),
    };
    assert_eq!(
        told,
        [
            step(Some((1, 3)), "FROM a", StepState::Begun),
            step(Some((1, 3)), "FROM a", StepState::Done),
            step(Some((2, 3)), "COPY f /f", StepState::Begun),
            step(Some((2, 3)), "COPY f /f", StepState::Cached),
            step(Some((3, 3)), "RUN echo hi", StepState::Begun),
            output,
            step(Some((3, 3)), "RUN echo hi", StepState::Done),
        ]
    );
}

#[test]
fn a_failure_has_its_reason_and_what_was_written_last() {
    let (told, end) = read(&[
        json!({ "stream": "Step 1/1 : RUN x" }),
        json!({ "stream": format!("{}\n", "é".repeat(OUTPUT_BYTES_KEPT * 2)) }),
        json!({ "stream": "the end\n" }),
        json!({ "errorDetail": { "code": 3, "message": "returned 3" }, "error": "returned 3" }),
    ]);
    let (message, output) = end.unwrap_err();
    assert_eq!(message, "returned 3");
    assert!(output.ends_with("the end"), "{output}");
    assert!(output.len() <= 2 * OUTPUT_BYTES_KEPT);
    let last = told.last().unwrap();
    assert_eq!(*last, step(Some((1, 1)), "RUN x", StepState::Failed));
}

#[test]
fn a_step_of_buildkit_is_told_once_for_each_state() {
    let begun = "CrIBCkdzaGEyNTY6NGVlODA1NzRlM2RiMjVkZWRmNDUyZWJhMGYyMDdlMjQwZDc3ZGVmZDcwMGY4\
                 YTQxY2MwZWU0ZDdkZDYxNzgwZRJHc2hhMjU2OjFjYjExM2RhM2QzZmY2OWI1ODQ2OGVmNjg4YTlm\
                 MGY4YTc3MzBkZDFmMjIwZTEwZDA0MDMyNDdiZDA0Zjg3YjkaEFs0LzRdIFJVTiBleGl0IDMqDAjr\
                 h+fXBhDa7u7hAg==";
    let line = json!({ "id": "moby.buildkit.trace", "aux": begun });
    let (told, _) = read(&[line.clone(), line, json!({ "aux": "not one" })]);
    assert_eq!(told, [step(Some((4, 4)), "RUN exit 3", StepState::Begun)]);
}

#[test]
fn positions_are_where_buildkit_puts_them() {
    assert_eq!(traced_position("[2/4] RUN a"), (Some((2, 4)), "RUN a"));
    let staged = traced_position("[stage-0 2/4] RUN [a] b");
    assert_eq!(staged, (Some((2, 4)), "RUN [a] b"));
    let internal = "[internal] load metadata";
    assert_eq!(traced_position(internal), (None, internal));
    assert_eq!(traced_position("exporting"), (None, "exporting"));
}

#[test]
fn a_status_callback_hears_of_steps() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let callback = Arc::clone(&heard);
    let listener = as_statuses(Arc::new(move |update: &StatusUpdate| {
        callback.lock().unwrap().push(update.clone());
    }));
    listener(&step(Some((1, 2)), "RUN a", StepState::Begun));
    listener(&step(Some((1, 2)), "RUN a", StepState::Done));
    listener(&BuildEvent::Output {
        text: "x".to_owned(),
    });
    let heard = heard.lock().unwrap();
    assert_eq!(
        *heard,
        [StatusUpdate {
            status: RuntimeStatus::BuildingRuntime,
            message: "step 1 of 2: RUN a".to_owned(),
        }]
    );
}
