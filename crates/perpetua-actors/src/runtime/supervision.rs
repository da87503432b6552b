//! What follows a fault, and how an actor begins anew. Must not know engines by their types.

use std::sync::Arc;

use super::core::Core;
use super::group::Group;
use super::timer::Job;
use crate::error::Result;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::ActorId;
use crate::supervise::{Decision, OnFault};

impl Core {
    /// Lets a faulted actor handle messages again, with the state that its options say.
    pub(super) fn go_on(&self, group: &Group, actor: ActorId) -> Result<()> {
        if group.on_fault == OnFault::Restart {
            return self.restart(group, actor);
        }
        self.transition(group, actor, ActorState::Active)?;
        tracing::info!(actor = group.member(actor), "restarted");
        Ok(())
    }

    /// Gives an actor its first state again, and lets it handle messages.
    pub(super) fn restart(&self, group: &Group, actor: ActorId) -> Result<()> {
        self.begin_with(group, actor, &group.initial)?;
        tracing::info!(actor = group.member(actor), "restarted");
        Ok(())
    }

    /// Gives an actor a state, and lets it handle messages.
    pub(super) fn begin_with(&self, group: &Group, actor: ActorId, state: &[u8]) -> Result<()> {
        loop {
            let life = self.life(actor);
            if life == ActorState::Terminated {
                return life.check_move(ActorState::Active, &group.title(actor));
            }
            self.engine.write_state(actor, state)?;
            // The handler that ran may have faulted, before it got the state or after.
            if self.life(actor) == life {
                return match life {
                    ActorState::Active => Ok(()),
                    _ => self.transition(group, actor, ActorState::Active),
                };
            }
        }
    }

    /// Does what the options of an actor that has faulted say.
    pub(super) fn supervise(&self, group: &Arc<Group>, actor: ActorId) {
        let decision = lock(&self.supervisor).decide(actor, group.supervision, self.host.time.now());
        tracing::info!(actor = %group.title(actor), ?decision, "supervision");
        match decision {
            Decision::Leave => {}
            Decision::RestartAfter(wait) => {
                let job = Job::Restart(Arc::clone(group), actor);
                self.host.timer.add(self.host.time.now() + wait, job);
            }
            Decision::Terminate => {
                // Somebody else may have done it; faulted actors run no handler.
                if self.transition(group, actor, ActorState::Terminated).is_ok() {
                    self.remove(group, actor);
                }
            }
            Decision::Escalate => self.escalate(group, actor),
        }
    }

    fn escalate(&self, group: &Group, actor: ActorId) {
        let fault = self.host.last_fault(actor).unwrap_or_default();
        let text = format!("{} faulted: {fault}", group.title(actor));
        let above = group
            .supervisor
            .and_then(|id| lock(&self.names).group_of(id).map(|group| (group, id)));
        if let Some((above, id)) = above {
            if self.engine.transition(id, ActorState::Faulted).is_ok() {
                self.host.note_fault(id, text);
                let now = self.host.time.now();
                self.host.timer.add(now, Job::Faulted(above, id));
            }
            return;
        }
        *lock(&self.failure) = Some(text);
        self.close();
        let groups: Vec<_> = lock(&self.names).numbers.values().cloned().collect();
        for actor in groups.iter().flat_map(|group| group.actors()) {
            if self.life(actor) == ActorState::Active {
                // It may have faulted meanwhile, and then stands still, too.
                let _ = self.engine.transition(actor, ActorState::Deactivated);
            }
        }
    }
}
