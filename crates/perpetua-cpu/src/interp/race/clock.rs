//! Who knows of whose accesses: vector clocks of lanes, kept short because most lanes of a block know the same.
//! Knows nothing of memory.
//!
//! Each block has a time, which grows with its barriers, releases and fences; an access carries the time at
//! which it was made. A [`Knowledge`] says, for each block, up to which time its accesses are known to have
//! happened: those of all its lanes, and for single lanes further. An access happens before another one if the lane that
//! makes the other one knows of it.
//!
//! - A barrier tells all lanes what each of them knows, and of all accesses of the group before it.
//! - A release tells whoever acquires at that place what the releasing lane knows, and of its own accesses.
//! - A fence does the same for whoever reads what its lane writes atomically afterwards, and completes an acquire from
//!   what its lane has read atomically before.
//! - A read-modify-write passes on what was published at its place before (release sequences).
//! - A barrier also completes acquires, and what each lane of a group published by a fence before a barrier, all its
//!   lanes publish after it: that is how "write, fence, barrier, one lane counts" is meant, and a barrier orders
//!   the accesses before it before those after it.
//!
//! - Lanes of a subgroup that converge tell each other what they know, and of their accesses; what one of them then publishes
//!   wants a fence of its own behind that.
//!
//! What is published at block scope reaches lanes of the same group alone.

use std::collections::{BTreeMap, HashMap};

use perpetua_ir::ir::{MemOrder, Scope, Sync};

/// Point in a block's time.
pub(super) type Time = u32;

/// Up to where the accesses of one block are known: those made before the time given.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    all: Time,
    /// Further for these lanes.
    lanes: BTreeMap<u32, Time>,
}

impl Known {
    fn join(&mut self, other: &Known) {
        self.all = self.all.max(other.all);
        for (lane, time) in &other.lanes {
            let known = self.lanes.entry(*lane).or_default();
            *known = (*known).max(*time);
        }
        let all = self.all;
        self.lanes.retain(|_, time| *time > all);
    }
}

/// Up to where the accesses of blocks are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Knowledge(HashMap<u32, Known>);

impl Knowledge {
    pub(super) fn join(&mut self, other: &Knowledge) {
        for (block, known) in &other.0 {
            self.0.entry(*block).or_default().join(known);
        }
    }

    /// Whether an access of `lane` of `block` at `time` is known.
    pub(super) fn has(&self, block: u32, lane: u32, time: Time) -> bool {
        self.0.get(&block).is_some_and(|known| {
            time < known.all || known.lanes.get(&lane).is_some_and(|until| time < *until)
        })
    }
}

/// What an atomic place, or a fence, hands on: to whom scope allows.
#[derive(Clone, Debug, Default)]
pub(super) struct Published {
    /// Changes with the content, and is no other place's; 0: nothing was ever published.
    version: u64,
    /// To lanes of any block.
    device: Knowledge,
    /// To lanes of this block alone.
    group: Option<(u32, Knowledge)>,
}

impl Published {
    fn join(&mut self, other: &Published) {
        self.device.join(&other.device);
        match (&mut self.group, &other.group) {
            (Some((mine, known)), Some((block, more))) if mine == block => known.join(more),
            // A place has room for one group's; the latest is the one that its lanes go on with.
            (mine, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    /// What a lane of `block` may take at `scope`.
    fn taken(&self, block: u32, scope: Scope) -> Knowledge {
        let mut taken = Knowledge::default();
        let group = self.group.as_ref().filter(|(b, _)| *b == block);
        if let Some((_, known)) = group {
            taken.join(known);
        }
        if scope != Scope::Block || group.is_some() {
            taken.join(&self.device);
        }
        taken
    }
}

/// What single lanes know or do beyond their group.
#[derive(Clone, Debug, Default)]
struct Lane {
    known: Knowledge,
    /// Published by its last fences.
    fenced: Published,
    /// What it has taken last: version, scope, and whether it acquired. Waiting loops take the same again and again.
    taken: Option<(u64, Scope, bool)>,
    /// Read atomically, to be known after a fence: of its own group's releases and of all.
    pending: Knowledge,
    pending_device: Knowledge,
}

/// The time of one block, and what its lanes know.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    block: u32,
    now: Time,
    /// When the last barrier was: all lanes know of the group's accesses before that.
    since: Time,
    known: Knowledge,
    fenced: Published,
    lanes: HashMap<u32, Lane>,
}

impl Clock {
    pub(super) fn new(block: u32) -> Clock {
        Clock {
            block,
            now: 1,
            since: 1,
            known: Knowledge::default(),
            fenced: Published::default(),
            lanes: HashMap::new(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Whether an access is known to `lane` of this group.
    pub(super) fn knows(&self, lane: u32, (by_block, by_lane, time): (u32, u32, Time)) -> bool {
        by_block == self.block && (by_lane == lane || time < self.since)
            || self.known.has(by_block, by_lane, time)
            || self
                .lanes
                .get(&lane)
                .is_some_and(|l| l.known.has(by_block, by_lane, time))
    }

    /// All that `lane` knows, its own accesses up to now included.
    fn view(&self, lane: u32) -> Knowledge {
        let mut view = self.known.clone();
        if let Some(l) = self.lanes.get(&lane) {
            view.join(&l.known);
        }
        let own = Known {
            all: self.since,
            lanes: BTreeMap::from([(lane, self.now + 1)]),
        };
        view.0.entry(self.block).or_default().join(&own);
        view
    }

    fn publication(&self, view: Knowledge, scope: Scope) -> Published {
        Published {
            version: 0,
            device: match scope {
                Scope::Block => Knowledge::default(),
                Scope::Device | Scope::System => view.clone(),
            },
            group: Some((self.block, view)),
        }
    }

    pub(super) fn barrier(&mut self) {
        for (_, lane) in std::mem::take(&mut self.lanes) {
            self.known.join(&lane.known);
            self.known.join(&lane.pending);
            self.known.join(&lane.pending_device);
            self.fenced.join(&lane.fenced);
        }
        self.now += 1;
        self.since = self.now;
    }

    pub(super) fn converge(&mut self, lanes: &[u32]) {
        let mut view = Knowledge::default();
        lanes.iter().for_each(|lane| view.join(&self.view(*lane)));
        for lane in lanes {
            self.lanes.entry(*lane).or_default().known.join(&view);
        }
        self.now += 1;
    }

    pub(super) fn fence(&mut self, scope: Scope, lane: u32) {
        let l = self.lanes.entry(lane).or_default();
        let pending = std::mem::take(&mut l.pending);
        l.known.join(&pending);
        if scope != Scope::Block {
            let pending = std::mem::take(&mut l.pending_device);
            l.known.join(&pending);
        }
        let fenced = self.publication(self.view(lane), scope);
        if let Some(l) = self.lanes.get_mut(&lane) {
            l.fenced.join(&fenced);
        }
        self.now += 1;
    }

    /// An atomic access of `lane` at a place where `place` is published: it may read, and it may write, and then
    /// `version` is a number never used before.
    pub(super) fn atomic(
        &mut self,
        lane: u32,
        sync: Sync,
        (reads, writes): (bool, bool),
        place: &mut Published,
        version: u64,
    ) {
        let acquires = matches!(
            sync.order,
            MemOrder::Acquire | MemOrder::AcqRel | MemOrder::SeqCst
        );
        let releases = matches!(
            sync.order,
            MemOrder::Release | MemOrder::AcqRel | MemOrder::SeqCst
        );
        let taken = Some((place.version, sync.scope, acquires));
        let l = self.lanes.entry(lane).or_default();
        if reads && place.version != 0 && l.taken != taken {
            l.taken = taken;
            let device = place.taken(self.block, sync.scope);
            if acquires {
                l.known.join(&device);
            } else {
                l.pending.join(&place.taken(self.block, Scope::Block));
                l.pending_device.join(&device);
            }
        }
        if writes {
            let mut out = self.fenced.clone();
            if let Some(l) = self.lanes.get(&lane) {
                out.join(&l.fenced);
            }
            if sync.scope == Scope::Block {
                out.device = Knowledge::default();
            }
            if releases {
                out.join(&self.publication(self.view(lane), sync.scope));
                self.now += 1;
            }
            if reads {
                place.join(&out);
            } else {
                *place = out;
            }
            place.version = version;
        }
    }
}
