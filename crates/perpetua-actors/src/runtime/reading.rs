//! What a runtime says of its actors to those who look. Must not know who they are, nor engines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::core::Core;
use super::group::Group;
use crate::lifecycle::ActorState;
use crate::lock::lock;
use crate::message::ActorId;
use crate::telemetry::{ActorMetrics, ActorReading, Reading};

/// The actors of larger launches are told of together.
const ONE_BY_ONE: u32 = 1024;
/// So many entries; after that each launch is one.
const ENTRIES: usize = 4096;
/// And after so many, all further launches are one.
const MOST_ENTRIES: usize = 2 * ENTRIES;

impl Core {
    /// What all actors do now. Stops nobody; waits while somebody launches.
    pub(super) fn reading(&self) -> Reading {
        let groups: Vec<Arc<Group>> = lock(&self.names).numbers.values().cloned().collect();
        let mut reading = Reading {
            stays: self.engine.stays(),
            dead_letters: self.host.dead.counts().total(),
            failure: self.failure(),
            ..Reading::new(self.engine.kind().to_string())
        };
        let mut rest = ActorReading::new("(others)", u32::MAX, "", ActorMetrics::default()).of_many(0, 0);
        for group in groups {
            let fits = reading.actors.len() + group.count as usize <= ENTRIES;
            if group.count <= ONE_BY_ONE && fits {
                let each = group.actors().map(|actor| self.one(&group, actor));
                reading.actors.extend(each);
            } else if reading.actors.len() < MOST_ENTRIES {
                reading.actors.push(self.together(&group));
            } else {
                let more = self.together(&group);
                rest.metrics.merge(&more.metrics);
                rest.actors += more.actors;
            }
        }
        if rest.actors > 0 {
            reading.actors.push(rest);
        }
        reading
    }

    fn one(&self, group: &Group, actor: ActorId) -> ActorReading {
        let state = self.life(actor).to_string();
        let metrics = self.metrics(group, actor, 1);
        ActorReading::new(group.member(actor), actor.0, state, metrics).launched_as(&group.name)
    }

    fn together(&self, group: &Group) -> ActorReading {
        let mut states: BTreeMap<u8, u32> = BTreeMap::new();
        for actor in group.actors() {
            *states.entry(self.life(actor) as u8).or_default() += 1;
        }
        let (state, count) = states
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .unwrap_or_default();
        let state = ActorState::from_number(state).map_or_else(String::new, |state| state.to_string());
        let metrics = self.metrics(group, group.first, group.count);
        ActorReading::new(group.name.clone(), group.first.0, state, metrics).of_many(group.count, count)
    }

    /// What `count` actors of a group from `first` on have done, all together. Where all actors of the group have one histogram of
    /// latencies, it is that.
    pub(super) fn metrics(&self, group: &Group, first: ActorId, count: u32) -> ActorMetrics {
        let mut all = ActorMetrics::default();
        if count == group.count {
            if let Some(last) = group.telemetry.last.get() {
                return last.clone();
            }
            all = self.engine.metrics_of(group);
        } else {
            let actors = (first.0..first.0 + count).map(ActorId);
            let each = actors.filter_map(|actor| self.engine.metrics(actor));
            each.for_each(|one| all.merge(&one));
        }
        if let Some(shared) = group.telemetry.latency.get() {
            all.latency = shared.snapshot();
        }
        all
    }

    /// Keeps what a group has done for who asks later, when nobody is left who knows: all its `count` actors are terminated.
    pub(super) fn keep_metrics(&self, group: &Group, count: u32) {
        if count == group.count {
            let last = ActorMetrics {
                queue_depth: 0,
                ..self.metrics(group, group.first, count)
            };
            // Where two terminate it, the first one saw it whole.
            let _ = group.telemetry.last.set(last);
        }
    }
}
