//! Naming the limits that a sandbox has met.

use std::{sync::atomic::Ordering, time::Duration};

use zareba_protocol::{LimitHit, Observation, ObservationKind};
use zareba_runtime::limits;

use super::DockerSandbox;

/// The exit code of what was killed, as the kernel does when memory runs out.
const KILLED: i64 = 137;
/// How long the Engine may take to tell that it was for that reason.
const OOM_NOTICE_MAX: Duration = Duration::from_millis(250);

impl DockerSandbox {
    /// Adds them to what a command came to.
    pub(super) async fn tell_limits(&self, observation: &mut Observation) {
        let ObservationKind::Run(output) = &mut observation.kind else {
            return;
        };
        let metadata = &mut output.metadata;
        for limit in self.met(metadata.exit_code).await {
            let line = format!("\n[Limit: {}.]", limit.message);
            metadata.suffix.push_str(&line);
            metadata.limits.push(limit);
        }
    }

    /// Those that were met since this was last asked. The last command ended with this exit code.
    pub(super) async fn met(&self, exit_code: i64) -> Vec<LimitHit> {
        if let Some(counters) = &self.parts.counters {
            return counters.met();
        }
        let mut happened = self.parts.happened.clone();
        let told = self.oom_told.load(Ordering::Acquire);
        if exit_code == KILLED {
            let notice = happened.wait_for(|happened| happened.out_of_memory > told);
            let _ = tokio::time::timeout(OOM_NOTICE_MAX, notice).await;
        }
        let now = happened.borrow().out_of_memory;
        match now.saturating_sub(self.oom_told.swap(now, Ordering::AcqRel)) {
            0 => Vec::new(),
            killed => {
                let limit = self.parts.shared.options.usage.memory_bytes;
                vec![limits::out_of_memory(Some(limit), killed)]
            }
        }
    }
}
