//! How users move actors on in their lives. Must not know engines.

use std::path::Path;
use std::time::Duration;

use super::core::MOST_HOMES;
use super::handle::KernelHandle;
use crate::checkpoint::Image;
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::message::ActorId;

impl KernelHandle {
    /// Where in its life the (first) actor is.
    pub fn state(&self) -> ActorState {
        self.core.life(self.first)
    }

    /// Where each of the actors is.
    pub fn states(&self) -> Vec<ActorState> {
        self.all().map(|actor| self.core.life(actor)).collect()
    }

    /// Waits until all are in this state.
    ///
    /// # Errors
    /// [`ActorError::IllegalMove`] where one is terminated and will not come there.
    pub async fn wait_for(&self, state: ActorState) -> Result<()> {
        let (is_there, gone) = (
            |actor| self.core.life(actor) == state,
            |actor| self.core.life(actor) == ActorState::Terminated,
        );
        self.core
            .poll_for(Duration::MAX, || self.all().all(is_there) || self.all().any(gone))
            .await;
        self.each(|actor| match is_there(actor) || !gone(actor) {
            true => Ok(()),
            false => ActorState::Terminated.check_move(state, &self.group.title(actor)),
        })
    }

    /// Lets it handle messages.
    ///
    /// # Errors
    /// [`ActorError::IllegalMove`] unless it is launched, deactivated or faulted.
    pub async fn activate(&self) -> Result<()> {
        self.core.check_open()?;
        let outcome = self.each(|actor| self.core.transition(&self.group, actor, ActorState::Active));
        self.core.engine.await_lives(&mut self.all().take(MOST_HOMES));
        outcome
    }

    /// Lets it handle what the host has sent it so far, then deactivates it: what comes from then on waits.
    ///
    /// # Errors
    /// As [`KernelHandle::deactivate`].
    pub async fn drain(&self) -> Result<()> {
        let engine = &self.core.engine;
        let rests = |actor| {
            let waits = engine
                .metrics(actor)
                .is_some_and(|metrics| metrics.queue_depth > 0);
            self.core.life(actor) != ActorState::Active || !waits && engine.settled(actor)
        };
        self.core.poll_for(Duration::MAX, || self.all().all(rests)).await;
        self.deactivate().await
    }

    /// Lets its messages wait. When this returns, no handler of it runs; where all is well, it stays so until it is activated.
    ///
    /// # Errors
    /// [`ActorError::IllegalMove`] unless it is active, and where the handler that still ran has faulted.
    pub async fn deactivate(&self) -> Result<()> {
        let to = ActorState::Deactivated;
        let mut moved = Vec::new();
        let outcome = self.each(|actor| {
            self.core.transition(&self.group, actor, to)?;
            moved.push(actor);
            Ok(())
        });
        for actor in &moved {
            self.core.settle(*actor).await;
        }
        outcome?;
        self.each(|actor| match self.core.life(actor) {
            ActorState::Deactivated => Ok(()),
            other => other.check_move(to, &self.group.title(actor)),
        })
    }

    /// Ends it. A message whose handler runs is handled to its end; those that wait become dead letters, and who asked them is told.
    ///
    /// # Errors
    /// [`ActorError::IllegalMove`] if it is terminated.
    pub async fn terminate(&self) -> Result<()> {
        let mut ended = Vec::new();
        let outcome = self.each(|actor| {
            self.core.transition(&self.group, actor, ActorState::Terminated)?;
            ended.push(actor);
            Ok(())
        });
        for actor in &ended {
            self.core.settle(*actor).await;
        }
        self.core.keep_metrics(&self.group, self.count);
        for actor in ended {
            self.core.remove(&self.group, actor);
        }
        outcome
    }

    /// Gives it its first state again and lets it handle messages: after a fault, or at any time. Its mailbox stays.
    ///
    /// # Errors
    /// [`ActorError::IllegalMove`] if it is terminated.
    pub async fn restart(&self) -> Result<()> {
        self.core.check_open()?;
        for actor in self.all() {
            self.core.settle(actor).await;
        }
        self.each(|actor| self.core.restart(&self.group, actor))
    }

    /// Gives it the state that a checkpoint holds of it, and lets it handle messages: after a fault, or at any time. Its mailbox stays
    /// as it is.
    ///
    /// # Errors
    /// [`ActorError::Checkpoint`] where the file does not hold it; [`ActorError::IllegalMove`] if it is terminated.
    pub async fn restore(&self, path: impl AsRef<Path>) -> Result<()> {
        let (image, path) = (Image::read(path.as_ref())?, path.as_ref());
        for actor in self.all() {
            self.core.settle(actor).await;
        }
        self.each(|actor| self.core.restore_actor(&self.group, actor, &image, path))
    }

    /// Looks again at everything that these actors could not deliver.
    pub(super) fn resume_all(&self) {
        self.all().for_each(|actor| self.core.engine.resume(actor));
    }

    /// Terminates those that are not yet, without waiting for handlers that run.
    pub(super) fn terminate_rest(&self) {
        let ended = self.all().filter(|actor| {
            self.core.life(*actor) != ActorState::Terminated
                && self
                    .core
                    .transition(&self.group, *actor, ActorState::Terminated)
                    .is_ok()
        });
        let ended: Vec<ActorId> = ended.collect();
        self.core.keep_metrics(&self.group, self.count);
        for actor in ended {
            self.core.remove(&self.group, actor);
        }
    }

    // Does something with every actor, whatever becomes of the others.
    fn each(&self, mut what: impl FnMut(ActorId) -> Result<()>) -> Result<()> {
        let mut failed: Vec<ActorError> = self.all().filter_map(|actor| what(actor).err()).collect();
        match failed.len() {
            0 => Ok(()),
            1 if self.count == 1 => Err(failed.remove(0)),
            _ => Err(ActorError::Several {
                name: self.group.name.clone(),
                actors: self.count,
                failed,
            }),
        }
    }
}
