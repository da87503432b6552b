//! Checkpoints of a running system, and systems out of checkpoints. Must not know the file's format.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use super::arena::BlockId;
use super::core::{Core, Names};
use super::engine::ActorImage;
use super::group::{Group, GroupTelemetry};
use super::migrate::layout_of;
use super::timer::Job;
use crate::checkpoint::{self, BlockImage, GroupImage, Image, TypeImage, unusable};
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::ActorId;
use crate::supervise::Supervision;

impl Core {
    /// Writes all actors to a file.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let _span = tracing::info_span!("checkpoint", path = %path.display()).entered();
        let image = self.image()?;
        let actors: usize = image.groups.iter().map(|group| group.actors.len()).sum();
        image.write(path)?;
        tracing::info!(actors, "checkpoint written");
        Ok(())
    }

    /// All actors as they stand between two messages. They go on when this returns.
    pub(super) fn image(&self) -> Result<Image> {
        // Nobody launches meanwhile.
        let names = lock(&self.names);
        // Until all has been copied.
        let _span = tracing::debug_span!("freeze").entered();
        let mut frozen = self.engine.freeze()?;
        frozen.look()?;
        tracing::debug!("frozen");
        let groups = names.numbers.values().map(|group| {
            let images = group
                .actors()
                .filter_map(|actor| Some((actor, frozen.image(actor)?)));
            let actors = images.map(|(actor, image)| self.actor_image(actor, image));
            group_image(group, actors.collect())
        });
        let mut image = Image {
            groups: groups.collect(),
            topics: (0..).map_while(|number| self.host.pubsub.topic(number)).collect(),
            stamp: self.host.now()?,
            correlation: self.host.asks.position(),
            blocks: Vec::new(),
        };
        self.copy_blocks(&mut image);
        drop(frozen);
        Ok(image)
    }

    // All actors stand still, and the devices, too.
    fn copy_blocks(&self, image: &mut Image) {
        let mut blocks = Vec::new();
        for packets in image.lists_mut() {
            packets.retain(|packet| {
                let Some(id) = BlockId::of(packet) else {
                    return true;
                };
                // Only what the host takes out at this moment is without its block: so it was taken before.
                let copy = self.host.arena.copy_of(id);
                let is_there = copy.is_some();
                blocks.extend(copy.map(|(limit, words)| BlockImage {
                    at: id.at,
                    generation: id.generation,
                    limit,
                    words,
                }));
                is_there
            });
        }
        image.blocks = blocks;
    }

    // The image with its blocks in this runtime's arena.
    fn place_blocks(&self, image: &Image, path: &Path) -> Result<Image> {
        let mut image = image.clone();
        let mut placed = HashMap::new();
        for block in std::mem::take(&mut image.blocks) {
            let limit = block.limit as usize;
            if block.words.len() > limit {
                let cause = "a message's vectors are longer than their block";
                return Err(unusable(path, cause.into()));
            }
            let lease = self.host.arena.alloc_with(limit, &block.words)?;
            placed.insert((block.at, block.generation), lease);
        }
        let mut complete = true;
        for packet in image.lists_mut().flatten() {
            if let Some(BlockId { at, generation }) = BlockId::of(packet) {
                match placed.remove(&(at, generation)) {
                    Some(lease) => lease.keep().attach(packet),
                    None => {
                        BlockId::detach(packet);
                        complete = false;
                    }
                }
            }
        }
        if complete {
            return Ok(image);
        }
        self.release_blocks(&mut image);
        Err(unusable(path, "a message's vectors are missing".into()))
    }

    fn release_blocks(&self, image: &mut Image) {
        let packets = image.lists_mut().flatten();
        packets.for_each(|packet| self.host.arena.release(packet));
    }

    fn actor_image(&self, actor: ActorId, image: ActorImage) -> checkpoint::ActorImage {
        let outputs = self.host.known_outputs(actor);
        checkpoint::ActorImage {
            actor: actor.0,
            life: image.life,
            state: image.state,
            // Restored mailboxes take all.
            mailbox: [image.mailbox, self.feeds.fed(actor)].concat(),
            unsent: image.unsent,
            subscriptions: self
                .host
                .pubsub
                .subscriptions_of(actor)
                .iter()
                .map(|one| (one.pattern().clone(), one.options().clone()))
                .collect(),
            outputs: outputs.map(|outputs| outputs.snapshot()).unwrap_or_default(),
            processed: image.processed,
            errors: image.errors,
        }
    }

    /// Launches what the image holds, or nothing.
    pub(super) fn restore(&self, image: &Image, path: &Path) -> Result<Vec<Arc<Group>>> {
        let _span = tracing::info_span!("restore", path = %path.display()).entered();
        let mut image = image.clone();
        lock(&self.migrations)
            .apply(&lock(&self.names).handlers, &mut image)
            .map_err(|cause| unusable(path, cause))?;
        let mut image = self.place_blocks(&image, path)?;
        let launched = self.restore_placed(&image, path);
        if launched.is_err() {
            self.release_blocks(&mut image);
        }
        launched
    }

    fn restore_placed(&self, image: &Image, path: &Path) -> Result<Vec<Arc<Group>>> {
        self.check_open()?;
        let mut names = lock(&self.names);
        if names.next > 0 {
            return Err(unusable(
                path,
                "actors were launched already: restore it into a new runtime".into(),
            ));
        }
        let groups = image
            .groups
            .iter()
            .map(|group| named(&names, group, path))
            .collect::<Result<Vec<Group>>>()?;
        check_numbers(&groups, path)?;
        self.host.go_on_from(image.stamp)?;
        for (number, topic) in (0..).zip(&image.topics) {
            if self.host.pubsub.number(topic)? != number {
                return Err(unusable(path, format!("topic `{topic}` has another number here")));
            }
        }
        let mut launched = Vec::new();
        for (group, image) in groups.into_iter().zip(&image.groups) {
            let group = names.enter(group)?;
            group.telemetry.since.get_or_init(|| self.host.time.now());
            launched.push(Arc::clone(&group));
            if let Err(error) = self.fill(&group, image) {
                for group in launched {
                    for actor in group.actors() {
                        self.feeds.unsubscribe(&group, actor);
                        drop(self.engine.remove(actor));
                    }
                }
                *names = Names {
                    handlers: std::mem::take(&mut names.handlers),
                    ..Names::default()
                };
                return Err(error);
            }
        }
        drop(names);
        self.host.asks.go_on_from(image.correlation);
        // Only now, since they send to each other.
        for (group, image) in launched.iter().zip(&image.groups) {
            self.open_doors(group)?;
            for actor in &image.actors {
                let id = ActorId(actor.actor);
                if actor.life == ActorState::Terminated {
                    // It was about to be removed.
                    self.transition(group, id, actor.life)?;
                    self.remove(group, id);
                    continue;
                }
                self.engine.revive(id, actor.life);
                // It awaited its restart, or would have been given another.
                if actor.life == ActorState::Faulted
                    && matches!(group.supervision, Supervision::Restart { .. })
                {
                    let job = Job::Faulted(Arc::clone(group), id);
                    self.host.timer.add(self.host.time.now(), job);
                }
            }
            self.start_ticks(group);
        }
        tracing::info!(launches = launched.len(), "restored");
        Ok(launched)
    }

    /// Gives one actor the state that it has in the image, and lets it handle messages.
    pub(super) fn restore_actor(
        &self,
        group: &Group,
        actor: ActorId,
        image: &Image,
        path: &Path,
    ) -> Result<()> {
        self.check_open()?;
        let missing = || unusable(path, format!("it does not hold {}", group.title(actor)));
        let saved = image.groups.iter().find(|saved| saved.name == group.name);
        let saved = saved.ok_or_else(missing)?;
        let number = actor.0 - group.first.0;
        let state = saved
            .actors
            .iter()
            .find(|one| one.actor.wrapping_sub(saved.first) == number);
        let state = &state.ok_or_else(missing)?.state;
        let migrations = lock(&self.migrations);
        let state = migrations.state(&group.handler, saved, state);
        drop(migrations);
        let state = state.map_err(|cause| unusable(path, cause))?;
        group
            .check_state(&state)
            .map_err(|why| unusable(path, why.to_string()))?;
        self.begin_with(group, actor, &state)
    }

    fn fill(&self, group: &Arc<Group>, image: &GroupImage) -> Result<()> {
        self.engine.launch(group)?;
        let images = image.actors.iter().map(|actor| {
            let mut mailbox = actor.mailbox.clone();
            // The process that is gone may have handled them behind the checkpoint.
            for packet in mailbox.iter_mut().filter(|packet| group.repeats(packet)) {
                packet.header.deliveries = packet.header.deliveries.next();
            }
            let image = ActorImage {
                life: actor.life,
                state: actor.state.clone(),
                mailbox,
                unsent: actor.unsent.clone(),
                processed: actor.processed,
                errors: actor.errors,
            };
            (ActorId(actor.actor), image)
        });
        self.engine.restore(group, &images.collect())?;
        for actor in &image.actors {
            let id = ActorId(actor.actor);
            for (pattern, options) in &actor.subscriptions {
                self.host
                    .pubsub
                    .subscribe_with(id, pattern.clone(), options.clone())?;
            }
            if !actor.outputs.is_empty() {
                let outputs = self.host.outputs(id);
                for packet in &actor.outputs {
                    outputs.push(packet, usize::MAX);
                }
            }
        }
        // Those that the checkpoint does not have were terminated.
        let there: HashSet<u32> = image.actors.iter().map(|actor| actor.actor).collect();
        for id in group.actors() {
            if !there.contains(&id.0) {
                self.engine.transition(id, ActorState::Terminated)?;
                drop(self.engine.remove(id));
            }
        }
        Ok(())
    }
}

fn group_image(group: &Group, actors: Vec<checkpoint::ActorImage>) -> GroupImage {
    GroupImage {
        name: group.name.clone(),
        handler: group.handler.path.into(),
        version: group.handler.version,
        state_type: layout_of(&(group.handler.state_type)()),
        takes: group
            .takes
            .iter()
            .map(|takes| TypeImage {
                type_id: takes.type_id,
                path: takes.path.into(),
                version: takes.version,
                layout: takes.layout.into(),
            })
            .collect(),
        first: group.first.0,
        count: group.count,
        capacity: group.capacity as u64,
        block_size: group.block_size,
        device: group.device as u32,
        priority: group.priority,
        initial: group.initial.clone(),
        deadline: group.deadline,
        run_limit: group.run_limit,
        tick: group.tick,
        supervision: group.supervision,
        on_fault: group.on_fault,
        delivery: group.delivery,
        max_deliveries: group.max_deliveries,
        supervisor: group.supervisor.map(|actor| actor.0),
        actors,
    }
}

// The group that an image describes, with the handler that is registered under its path.
fn named(names: &Names, image: &GroupImage, path: &Path) -> Result<Group> {
    let handler = names.handlers.get(image.handler.as_str()).copied();
    let handler = handler.ok_or_else(|| {
        let cause = format!(
            "its handler `{}` is not known here: `register` it first",
            image.handler
        );
        unusable(path, cause)
    })?;
    let group = Group {
        name: image.name.clone(),
        first: ActorId(image.first),
        count: image.count,
        handler,
        takes: (handler.takes)(),
        capacity: usize::try_from(image.capacity).unwrap_or(usize::MAX),
        block_size: image.block_size,
        device: image.device as usize,
        priority: image.priority,
        initial: image.initial.clone(),
        deadline: image.deadline,
        run_limit: image.run_limit,
        tick: image.tick,
        supervision: image.supervision,
        on_fault: image.on_fault,
        delivery: image.delivery,
        max_deliveries: image.max_deliveries,
        supervisor: image.supervisor.map(ActorId),
        telemetry: GroupTelemetry::default(),
        gone: Default::default(),
        handles: Default::default(),
        any_left: Default::default(),
    };
    let states = image.actors.iter().map(|actor| &actor.state);
    for state in states.chain([&group.initial]) {
        group
            .check_state(state)
            .map_err(|why| unusable(path, why.to_string()))?;
    }
    if let Some(stranger) = image.actors.iter().find(|actor| !group.has(ActorId(actor.actor))) {
        let cause = format!("actor {} is not of `{}`", stranger.actor, image.name);
        return Err(unusable(path, cause));
    }
    Ok(group)
}

// Groups have names and numbers of their own.
fn check_numbers(groups: &[Group], path: &Path) -> Result<()> {
    let mut end = 0u64;
    for (i, group) in groups.iter().enumerate() {
        let first = u64::from(group.first.0);
        let twice = groups[..i].iter().any(|other| other.name == group.name);
        if first < end || twice || group.count == 0 {
            return Err(unusable(
                path,
                format!("`{}` does not fit its other actors", group.name),
            ));
        }
        end = first + u64::from(group.count);
    }
    match end {
        0..0xffff_ffff => Ok(()),
        _ => Err(unusable(path, "an actor has the host's number".into())),
    }
}

/// Does `work` on a thread of its own.
pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    type Slot<T> = Mutex<(Option<Result<T>>, Option<Waker>)>;
    let slot: Arc<Slot<T>> = Arc::new(Mutex::new((None, None)));
    let there = Arc::clone(&slot);
    let spawned = std::thread::Builder::new().spawn(move || {
        let result = work();
        let waker = {
            let mut slot = lock(&there);
            slot.0 = Some(result);
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    spawned.map_err(|source| ActorError::Io {
        path: "a thread".into(),
        source,
    })?;
    std::future::poll_fn(|cx| {
        let mut slot = lock(&slot);
        match slot.0.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
