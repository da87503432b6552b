//! What the host learns of a grid without stopping it: counters, latencies, signs of life, faults. Must not know runtimes.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use perpetua_device::fault::FaultRegistry;

use super::beat::Beat;
use super::counts::ActorCounts;
use super::homes::Grid;
use super::port::Port;
use super::special::OWN_LATENCIES;
use crate::error::Result;
use crate::kernels::layout::{ACTOR_WORDS, BOX_DONE, BOX_RESERVED, BOX_TICKET, HOME_WORDS, LATENCY_BUCKETS};
use crate::lock::lock;
use crate::telemetry::{Latencies, LatencyHistogram};

/// What a home has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GridReport {
    /// Packets taken in from the host.
    pub taken_in: u64,
    /// Handlers run, as the device counted them.
    pub handled: u64,
    /// Packets put out to the host.
    pub put_out: u64,
}

impl Grid {
    /// What a home has told last, without stopping it. Counters wrap at 2^32.
    pub fn report(&self, home: u32) -> GridReport {
        let Some(port) = self.shared.port(home) else {
            return GridReport::default();
        };
        let [_, handled, put_out, _] = port.report().0;
        GridReport {
            taken_in: port.taken_in().into(),
            handled: handled.into(),
            put_out: put_out.into(),
        }
    }

    /// How often the handler of one actor has run to its end, as its device counted. Stops nobody.
    pub fn handled(&self, index: u32) -> Result<u64> {
        let counts = self.counts(index..index + 1)?;
        Ok(counts.first().map_or(0, |counts| counts.handled))
    }

    /// What these actors have done, as their device counted, read at once.
    pub fn counts(&self, actors: Range<u32>) -> Result<Vec<ActorCounts>> {
        let first = self.shared.first_actor;
        let records =
            (first + actors.start) as usize * ACTOR_WORDS..(first + actors.end) as usize * ACTOR_WORDS;
        let records = self.shared.commons.actors.slice(records)?;
        let read = self.shared.commons.copies.read(&records)?;
        Ok(read.chunks_exact(ACTOR_WORDS).map(ActorCounts::of).collect())
    }

    /// Whether all that other homes have sent to these has been handled. Stops nobody.
    pub fn boxes_are_done(&self) -> Result<bool> {
        let (first, homes) = (self.shared.first_home as usize, self.shared.homes as usize);
        let words = self
            .shared
            .commons
            .homes
            .slice(first * HOME_WORDS..(first + homes) * HOME_WORDS)?;
        let read = self.shared.commons.copies.read(&words)?;
        Ok(read
            .chunks_exact(HOME_WORDS)
            .all(|home| home[BOX_DONE] == home[BOX_RESERVED]))
    }

    /// How many packets were ever put into a home's box, and how many of these it has handled. Both wrap at 2^32. Stops nobody.
    pub fn boxed(&self, home: u32) -> Result<(u32, u32)> {
        let at = (self.shared.first_home + home) as usize * HOME_WORDS;
        let words = self.shared.commons.homes.slice(at..at + HOME_WORDS)?;
        let read = self.shared.commons.copies.read(&words)?;
        Ok((read[BOX_TICKET], read[BOX_DONE]))
    }

    /// How long messages to one actor have waited until its handler began, as its device counted; to all of the grid where
    /// it has more than 4096. By the device's clock, which the host's agrees with to some microseconds. Stops nobody.
    pub fn latencies(&self, index: u32) -> Result<Latencies> {
        let shared = &*self.shared;
        match shared.actors <= OWN_LATENCIES {
            true => self.rows(index as usize..index as usize + 1),
            false => self.rows(0..shared.homes as usize),
        }
    }

    /// The same of messages to all actors.
    pub fn latencies_of_all(&self) -> Result<Latencies> {
        let rows = match self.shared.actors <= OWN_LATENCIES {
            true => self.shared.actors,
            false => self.shared.homes,
        };
        self.rows(0..rows as usize)
    }

    fn rows(&self, rows: std::ops::Range<usize>) -> Result<Latencies> {
        let shared = &*self.shared;
        let rows = shared
            .latencies
            .slice(rows.start * LATENCY_BUCKETS..rows.end * LATENCY_BUCKETS)?;
        let histogram = LatencyHistogram::new();
        for (at, count) in (0u64..).zip(shared.commons.copies.read(&rows)?) {
            let bucket = at % LATENCY_BUCKETS as u64;
            if count > 0 {
                // The middle of a bucket; those of a microsecond and less are one wide.
                let power = (bucket / 4).saturating_sub(1);
                let micros = (2 * (bucket - 4 * power) + 1) << power >> 1;
                histogram.record_many(micros * 1000, count.into());
            }
        }
        Ok(histogram.snapshot())
    }

    /// Since when a home has given no sign of life; zero where it has just given one. It gives one at least every few
    /// milliseconds, unless a handler runs.
    pub fn silence(&self, home: u32) -> Duration {
        let Some(beats) = self.shared.beats.get(home as usize) else {
            return Duration::ZERO;
        };
        let now = self.shared.port(home).map(Port::signs).unwrap_or_default();
        let mut last = lock(beats);
        if last.told != now || !self.shared.running.load(Ordering::Acquire) {
            *last = Beat {
                told: now,
                ..Beat::now()
            };
        }
        last.since.elapsed()
    }

    /// How long a handler may run.
    pub fn run_limit(&self) -> Duration {
        self.shared.run_limit
    }

    /// What a fault is, by the number of its site that a packet has told: with operands where it is the first that the device has
    /// recorded.
    pub fn fault_text(&self, site: u32) -> String {
        let recorded = self.take_fault();
        let Some((kernel, number)) = site
            .checked_sub(1)
            .and_then(|n| FaultRegistry::global().kernel(n))
        else {
            return recorded.unwrap_or_else(|| format!("an unknown fault (site {site})"));
        };
        let Some(fault) = kernel.faults.get(number as usize) else {
            return recorded.unwrap_or_else(|| format!("an unknown fault (site {site})"));
        };
        // The record is of the first of several.
        let place = format!("{}:{}", kernel.source, fault.line);
        match recorded {
            Some(text) if text.contains(&place) => text,
            _ => {
                let what = fault.kind.name().replace('_', " ");
                match fault.kind.operands() {
                    0 => format!("{what} ({place})"),
                    _ => format!("{what} of `{}` ({place})", fault.subject),
                }
            }
        }
    }

    /// The first fault that the device recorded since the last call, with operands.
    pub fn take_fault(&self) -> Option<String> {
        self.shared
            .stream
            .inner()
            .take_fault()
            .err()
            .map(|fault| fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use perpetua_device::{BackendKind, Device};

    use super::*;
    use crate::echo::{Echo, echo};
    use crate::grid::{Commons, GridOptions, Shape};
    use crate::kernels::layout::COMMAND_BECOME;
    use crate::message::{Kind, Packet};

    #[test]
    fn counters_go_on_beyond_32_bits() {
        let device = Device::new(BackendKind::Cpu, 0).unwrap();
        let commons = Arc::new(Commons::new(&device, Shape::new(1, 2)).unwrap());
        let grid = Grid::new(&commons, &echo::handler(), &[0; 8], &GridOptions::new(2, 1)).unwrap();
        // Active, and before the last number.
        let record = [2, u32::MAX, u32::MAX, 0];
        let write = || commons.actors.slice(ACTOR_WORDS..ACTOR_WORDS + 4)?.write(&record);
        grid.parked(write).unwrap().unwrap();
        let mut packet = Packet::of(&Echo::default());
        packet.header.destination = 1;
        assert_eq!(grid.push(0, [&packet.to_words()]), 1);
        while grid.drain(0, 1, |_| {}) == 0 {}
        // Counted behind the answer, and the upper word behind the lower one.
        while grid.handled(1).unwrap() != 1 << 32 {}
        let counts = grid.counts(0..2).unwrap();
        assert_eq!((counts[1].handled, counts[1].sent), (1 << 32, 1 << 32));
        assert_eq!(counts[0], ActorCounts::default());
    }

    #[test]
    fn an_actor_goes_on_only_behind_all_that_a_full_box_sent_back() {
        let device = Device::new(BackendKind::Cpu, 0).unwrap();
        let commons = Arc::new(Commons::new(&device, Shape::new(1, 2)).unwrap());
        let grid = Grid::new(&commons, &echo::handler(), &[0; 8], &GridOptions::new(2, 1)).unwrap();
        // Held, with one packet on its way to the host.
        let record = [3, 0, 0, 0, 0, 0, 1];
        let write = || commons.actors.slice(ACTOR_WORDS..ACTOR_WORDS + 7)?.write(&record);
        grid.parked(write).unwrap().unwrap();
        let mut message = Packet::of(&Echo::default());
        message.header.destination = 1;
        let become_active = |seen| {
            let mut command = message;
            (command.header.kind, command.header.type_id) = (Kind::Command, COMMAND_BECOME);
            command.payload[..2].copy_from_slice(&[2, seen]);
            command
        };
        // Told so before the host knew of the packet, then again behind it.
        let sent = [become_active(0), message, become_active(1), message].map(|packet| packet.to_words());
        assert_eq!(grid.push(0, &sent), 4);
        let mut out = Vec::new();
        while out.len() < 2 {
            grid.drain(0, 2, |words| out.push(words[6] & 255));
        }
        let [undelivered, answer] = [Kind::Undelivered, Kind::Reply].map(|kind| kind as u32);
        assert_eq!(out, [undelivered, answer]);
        while grid.handled(1).unwrap() != 1 {}
    }
}
