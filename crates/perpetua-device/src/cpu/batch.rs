//! Launches of one graph that follow one another and wait for no other work: run by one team of threads, without handing work over in between.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use super::claims::Span;
use super::launch::{Launch, Slabs};
use super::team::{self, Member, Progress};
use super::threads;
use super::wavefront::Wavefront;
use crate::error::{Error, Result};
use crate::native::Sharing;

/// Nanoseconds of a launch that are worth a thread more: threads that share launches wait for each other after each.
const SHARE: u64 = 1_000;

/// Nanoseconds that are worth a second thread. Of launches that take so long, one thread and two do equally many: what these take is
/// measured once, and which side of this number it comes out on must not matter.
const PAIR: u64 = 800;

/// Threads for which a launch of so many nanoseconds has work enough.
fn threads_for(nanoseconds: u64) -> usize {
    let pair = 1 + u64::from(nanoseconds >= PAIR);
    (nanoseconds / SHARE).clamp(pair, 1 << 16) as usize
}

/// Launches in succession.
pub(super) struct Batch {
    launches: Vec<Arc<Launch>>,
    // Bytes that a core has in its cache.
    cache: u64,
    // Made at the first run; `None` where each launch waits for the one before.
    wavefront: OnceLock<Option<Wavefront>>,
    // The memory that its launches touch, each part once.
    spans: OnceLock<Vec<Span>>,
}

/// The error of the earliest launch that had one.
#[derive(Default)]
struct First(Mutex<Option<(usize, Error)>>);

impl First {
    fn note(&self, launch: usize, result: Result<()>) {
        if let Err(error) = result {
            let mut first = self.0.lock().unwrap_or_else(|e| e.into_inner());
            if first.as_ref().is_none_or(|(earliest, _)| launch < *earliest) {
                *first = Some((launch, error));
            }
        }
    }

    fn result(self) -> Result<()> {
        let first = self.0.into_inner().unwrap_or_else(|e| e.into_inner());
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

impl Batch {
    pub(super) fn new(launches: Vec<Arc<Launch>>, cache: u64) -> Batch {
        Batch {
            launches,
            cache,
            wavefront: OnceLock::new(),
            spans: OnceLock::new(),
        }
    }

    /// The number of launches.
    pub(super) fn len(&self) -> usize {
        self.launches.len()
    }

    pub(super) fn is_small(&self) -> bool {
        Launch::are_small(&self.launches)
    }

    /// Makes its launches ready, and finds out what [`spans`](Batch::spans) has to say. Whether all can run in slabs now.
    pub(super) fn make_ready(&self) -> bool {
        // Each time: a launch that looks for races is not made ready, and may no longer have to look the next time.
        let mut ready = true;
        for launch in &self.launches {
            launch.make_ready();
            ready &= launch.in_slabs().is_some();
        }
        self.spans.get_or_init(|| {
            let mut all = HashSet::new();
            for launch in &self.launches {
                launch.spans(&mut |span| {
                    all.insert(span);
                });
            }
            all.into_iter().collect()
        });
        ready
    }

    /// Whether it runs as a wavefront; known once it has run.
    #[cfg(test)]
    pub(super) fn is_wavefront(&self) -> bool {
        matches!(self.wavefront.get(), Some(Some(_)))
    }

    /// What memory it touches, and nobody else may meanwhile.
    pub(super) fn spans(&self) -> &[Span] {
        self.spans.get().map_or(&[], Vec::as_slice)
    }

    /// Threads for which there is work enough in one of its launches, taking one for another.
    fn share(&self) -> usize {
        let all: u64 = self
            .launches
            .iter()
            .map(|launch| launch.nanoseconds())
            .fold(0, u64::saturating_add);
        threads_for(all / (self.launches.len() as u64).max(1))
    }

    /// Runs all launches, whatever becomes of some; gives the first error.
    pub(super) fn run<'s>(&'s self, sharing: Sharing) -> Result<()> {
        let together = |launch: &Arc<Launch>| launch.lanes() > 0 && !launch.reaches_host();
        let in_slabs = |launch: &'s Arc<Launch>| launch.in_slabs().filter(|_| together(launch));
        let launches: Option<Vec<Slabs<'_>>> = self.launches.iter().map(in_slabs).collect();
        let Some(launches) = launches.filter(|_| sharing == Sharing::ConflictFree) else {
            let mut first = Ok(());
            for launch in &self.launches {
                first = first.and(launch.run(sharing));
            }
            return first;
        };
        let first = First::default();
        let threads = match self.is_small() || !threads::may_spread() {
            true => 1,
            false => threads::count().min(self.share()),
        };
        if threads == 1 {
            for (i, launch) in launches.iter().enumerate() {
                // SAFETY: as in `shares`.
                first.note(i, unsafe { launch.run(0..launch.count(), sharing) });
            }
            return first.result();
        }
        let wavefront = self.wavefront.get_or_init(|| {
            let launches: Vec<_> = launches
                .iter()
                .map(|launch| Some((launch.count(), launch.footprints()?)))
                .collect::<Option<_>>()?;
            // Some is for what is not counted.
            let cache = i64::try_from(self.cache / 4 * 3).ok()?;
            Wavefront::new(&launches, cache, threads as i64)
        });
        let groups = wavefront.as_ref().map_or(0, |front| front.groups.len());
        let progress: Vec<Progress> = (0..groups).map(|_| Progress::new()).collect();
        team::gather(threads, &|member| match wavefront {
            Some(wavefront) => waves(wavefront, &progress, &launches, member, &first),
            None => shares(&launches, member, &first),
        });
        first.result()
    }
}

/// One launch after the other; each thread does the same share of each, so that it finds in its caches what it left there.
fn shares(launches: &[Slabs<'_>], member: &Member<'_>, first: &First) {
    for (i, launch) in launches.iter().enumerate() {
        let slabs = u128::from(launch.count());
        let bound = |number: usize| (slabs * number as u128 / member.count as u128) as u64;
        // SAFETY: the launch's arguments passed the signature's check (`KernelFunction::launch`'s contract), their memory is
        // kept alive by the batch and initialised (host pools give such), and claimed for it alone. Members' shares have nothing in common, and a
        // launch begins when all have ended the one before.
        let result = unsafe {
            launch.run(
                bound(member.number)..bound(member.number + 1),
                Sharing::ConflictFree,
            )
        };
        first.note(i, result);
        if !member.meet() {
            return;
        }
    }
}

/// Groups of launches, one thread behind the other through the grid: what a group has just computed is in the caches when
/// the next comes by.
fn waves(
    front: &Wavefront,
    progress: &[Progress],
    launches: &[Slabs<'_>],
    member: &Member<'_>,
    first: &First,
) {
    for (number, group) in front
        .groups
        .iter()
        .enumerate()
        .skip(member.number)
        .step_by(member.count)
    {
        let before = number.checked_sub(1).and_then(|before| progress.get(before));
        for tick in front.ticks(group) {
            if let Some(before) = before
                && !member.signals.wait(|| before.has_reached(tick))
            {
                return;
            }
            for i in group.clone() {
                let slabs = front.slabs(i, tick);
                if !slabs.is_empty() {
                    // SAFETY: as in `shares`; the ticks' slabs of a launch have nothing in common and are all, and slabs
                    // that conflict with those of earlier launches run after them, as `wavefront` argues: earlier groups
                    // have ended this tick, and launches of this one run in order.
                    first.note(i, unsafe { launches[i].run(slabs, Sharing::ConflictFree) });
                }
            }
            if let Some(own) = progress.get(number) {
                own.reach(tick, member.signals);
            }
        }
        // The groups that follow have ticks after this one's last.
        if let Some(own) = progress.get(number) {
            own.reach(i64::MAX, member.signals);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_thread_comes_sooner_than_a_third() {
        let threads = [0, PAIR - 1, PAIR, 3 * SHARE - 1, 3 * SHARE, 16 * SHARE].map(threads_for);
        assert_eq!(threads, [1, 1, 2, 2, 3, 16]);
        assert_eq!(threads_for(u64::MAX), 1 << 16);
    }
}
