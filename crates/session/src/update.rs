//! Changing a session that is open: when it goes to sleep, when it ends, and its labels.
//!
//! A change holds the turn of those who end the session, so that a session never ends with limits that
//! a caller was told are others.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::{
    Deed, Idle, Requester, SessionError, SessionLimits, SessionsOptions, check,
    conductor::Conductor, event, options::stricter_of,
};

/// What shall be different about a session; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionUpdate {
    /// How long nothing may be asked of it.
    pub idle_timeout: Option<Duration>,
    /// What happens then.
    pub when_idle: Option<Idle>,
    /// How long it may live.
    pub life: Option<Life>,
    /// Labels, in place of those that it has.
    pub labels: Option<BTreeMap<String, String>>,
    /// The longest life that the caller's key may give, from the session's start.
    pub life_max: Option<Duration>,
}

/// How long a session may live, counted from one of two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// From its start.
    FromStart(Duration),
    /// From now.
    FromNow(Duration),
}

impl Conductor {
    /// Changes it, records that and returns once it is written down.
    pub(crate) async fn update(
        self: &Arc<Self>,
        update: SessionUpdate,
        requester: &Requester,
    ) -> Result<(), SessionError> {
        let (session, by) = (Arc::clone(self), requester.to_value());
        let client = requester.clone();
        self.change(async move {
            session.require_unclosed("be changed")?;
            session.judge(&Deed::Update, &client).await?;
            let _turn = session.close_turn.lock().await;
            session.require_unclosed("be changed")?;
            if session.state().has_ended() {
                return Err(session.wrong_state("be changed"));
            }
            let limits = session.new_limits(&update)?;
            let labels = update.labels.as_ref().map(|labels| {
                let masked = |label: &String| session.mask.text(label).into_owned();
                let labels = labels.iter();
                labels
                    .map(|(name, label)| (name.clone(), masked(label)))
                    .collect()
            });
            let said = event::object(json!({ "limits": told(limits), "labels": labels, "by": by }));
            let before = session.replace(limits, labels);
            if let Err(error) = session.write_down().await {
                session.replace(before.0, Some(before.1));
                return Err(error.into());
            }
            session
                .record_aside(event::note_entry(None, "changed", said))
                .await;
            if let Some(live) = session.live.upgrade() {
                live.changed.notify_one();
            }
            Ok(())
        })
        .await
    }

    /// What its limits are then.
    fn new_limits(&self, update: &SessionUpdate) -> Result<SessionLimits, SessionError> {
        let before = self.limits();
        let life_max = match update.life {
            Some(Life::FromStart(life)) => Some(life),
            Some(Life::FromNow(life)) => Some(self.age().saturating_add(life)),
            None => before.life_max,
        };
        let asked = SessionLimits {
            idle_timeout: update.idle_timeout.or(before.idle_timeout),
            when_idle: update.when_idle.or(before.when_idle),
            life_max,
        };
        check::limits(&asked)?;
        if let Some(labels) = &update.labels {
            check::labels(labels)?;
        }
        let newly_asked = SessionLimits {
            idle_timeout: update.idle_timeout,
            when_idle: update.when_idle,
            life_max,
        };
        let of_key = update.life_max.filter(|_| update.life.is_some());
        require_permitted(newly_asked, &self.common.options, of_key, self.age())?;
        Ok(asked)
    }
}

/// Refuses limits of a session of this age that are asked for beyond what the operator's settings or the key
/// permit. What is not asked for is permitted.
pub(crate) fn require_permitted(
    asked: SessionLimits,
    options: &SessionsOptions,
    of_key: Option<Duration>,
    age: Duration,
) -> Result<(), SessionError> {
    let held = asked.within(options);
    let most = stricter_of(options.life_max, of_key);
    if let (Some(life), Some(most)) = (asked.life_max, most)
        && life > most
    {
        let left = match age.is_zero() {
            true => String::new(),
            false => {
                let left = most.saturating_sub(age).as_secs();
                format!(", of which {left} are left")
            }
        };
        let seconds = most.as_secs();
        let hint = format!("ask for {seconds} seconds from its start or less{left}");
        return Err(beyond("life_max", "a longer life", hint));
    }
    if asked.idle_timeout.is_some() && held.idle_timeout != asked.idle_timeout {
        let seconds = options.idle_timeout.as_secs();
        let hint = format!("ask for {seconds} seconds or less");
        return Err(beyond("idle_timeout", "a longer idle time", hint));
    }
    if asked.when_idle.is_some() && held.when_idle != asked.when_idle {
        let hint = "leave `when_idle` out, or ask for `close`".to_owned();
        let asked = "less to happen to an idle session";
        return Err(beyond("when_idle", asked, hint));
    }
    Ok(())
}

/// Limits as the log tells them, in seconds.
fn told(limits: SessionLimits) -> Value {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    json!({
        "idle_timeout": seconds(limits.idle_timeout),
        "when_idle": limits.when_idle,
        "life_max": seconds(limits.life_max),
    })
}

fn beyond(limit: &'static str, asked: &str, hint: String) -> SessionError {
    SessionError::LimitNotPermitted {
        limit,
        message: format!("{asked} was asked for than the operator's settings or the key permit"),
        hint,
    }
}
