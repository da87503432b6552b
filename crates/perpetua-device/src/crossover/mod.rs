//! From which size on a device is faster than the host: times of kinds of work by size, measured on the user's machine (`measure`) and kept
//! beside the other caches. The one such table: programs of the instruction set and tensors ask it. Must not know their operations.

mod measure;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::cache::{CacheKey, DiskCache};
use crate::info::DeviceInfo;
use crate::source::KernelId;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Each element by itself: `y = a x + y`.
    ElementWise,
    /// All elements into one: a dot product.
    Reduction,
    /// A product of square matrices, in tiles; its size is the elements of one.
    MatrixProduct,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 3] = [
        Operation::ElementWise,
        Operation::Reduction,
        Operation::MatrixProduct,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Operation::ElementWise => "element-wise",
            Operation::Reduction => "reduction",
            Operation::MatrixProduct => "matrix product",
        }
    }
}

/// Where the data is that work needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// On the device, where it stays over many launches.
    There,
    /// With the host, which also wants the result: transfers count.
    OnHost,
}

/// An operation's times at one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossoverPoint {
    /// The operation.
    pub operation: String,
    /// Its size, in elements.
    pub size: u64,
    /// On the host's processor.
    pub host: Duration,
    /// On the device, with data that is there.
    pub device: Duration,
    /// On the device, with the data's way there and back.
    pub transfers: Duration,
}

/// Times of operations on the host and on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crossover {
    points: Vec<CrossoverPoint>,
}

// What this process has found of pairs of devices.
static KNOWN: Mutex<Option<HashMap<CacheKey, Crossover>>> = Mutex::new(None);

impl Crossover {
    /// Of times that were measured.
    pub fn new(mut points: Vec<CrossoverPoint>) -> Crossover {
        points.sort_by(|a, b| (&a.operation, a.size).cmp(&(&b.operation, b.size)));
        Crossover { points }
    }

    /// All times, by operation and size.
    pub fn points(&self) -> &[CrossoverPoint] {
        &self.points
    }

    // The times that are kept, by this process or on disk.
    fn kept(key: CacheKey) -> Option<Crossover> {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = known.as_ref().and_then(|known| known.get(&key)).cloned();
        drop(known);
        kept.or_else(|| {
            let stored = Crossover::parse(&DiskCache::open("crossover")?.get(key)?)?;
            stored.remember(key);
            Some(stored)
        })
    }

    // Keeps the times, in the place of older ones. Without a cache on disk each process measures anew.
    fn keep(&self, key: CacheKey) {
        if let Some(cache) = DiskCache::open("crossover") {
            let _ = cache.put(key, self.print().as_bytes());
        }
        self.remember(key);
    }

    fn remember(&self, key: CacheKey) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().insert(key, self.clone());
    }

    /// Whether the device is faster at an operation of this size: with data that is there, or with its way there and back. Between
    /// sizes that were measured times are taken to follow a power of the size, and beyond them to keep their ratio. `None` for
    /// an operation that was not measured.
    pub fn is_device_faster(&self, operation: &str, size: u64, data: Data) -> Option<bool> {
        let of = |point: &CrossoverPoint| {
            let device = match data {
                Data::OnHost => point.transfers,
                Data::There => point.device,
            };
            let nanos = |time: Duration| (time.as_nanos().max(1)) as f64;
            // Above 0 where the device is faster.
            (
                (point.size.max(1) as f64).ln(),
                (nanos(point.host) / nanos(device)).ln(),
            )
        };
        let mut points = self
            .points
            .iter()
            .filter(|point| point.operation == operation)
            .map(of);
        let at = (size.max(1) as f64).ln();
        let mut before = points.next()?;
        if at <= before.0 {
            return Some(before.1 > 0.0);
        }
        for after in points {
            if at <= after.0 {
                let part = (at - before.0) / (after.0 - before.0);
                return Some(before.1 + part * (after.1 - before.1) > 0.0);
            }
            before = after;
        }
        Some(before.1 > 0.0)
    }

    fn print(&self) -> String {
        let mut text = String::new();
        for point in &self.points {
            let [host, device, transfers] =
                [point.host, point.device, point.transfers].map(|time| time.as_nanos());
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{} {host} {device} {transfers} {}",
                point.size, point.operation
            );
        }
        text
    }

    fn parse(bytes: &[u8]) -> Option<Crossover> {
        let line = |line: &str| {
            let mut parts = line.splitn(5, ' ');
            let mut number = || parts.next()?.parse::<u64>().ok();
            let (size, host, device, transfers) = (number()?, number()?, number()?, number()?);
            let [host, device, transfers] = [host, device, transfers].map(Duration::from_nanos);
            Some(CrossoverPoint {
                operation: parts.next()?.into(),
                size,
                host,
                device,
                transfers,
            })
        };
        let points = std::str::from_utf8(bytes).ok()?.lines().map(line);
        points.collect::<Option<Vec<_>>>().map(Crossover::new)
    }
}

// Other processors, devices and drivers have other times; so has other code of ours.
fn key(host: &DeviceInfo, device: &DeviceInfo, version: &str) -> CacheKey {
    let cores = host.multiprocessors.unwrap_or(0).to_string();
    let parts = [
        version,
        &host.name,
        &cores,
        &device.name,
        &device.backend.to_string(),
    ];
    CacheKey::new(
        KernelId::of(&parts.map(|part: &str| part.as_bytes())),
        "crossover",
        &device.driver,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(size: u64, host: u64, device: u64, transfers: u64) -> CrossoverPoint {
        let [host, device, transfers] = [host, device, transfers].map(Duration::from_nanos);
        CrossoverPoint {
            operation: "a sum".into(),
            size,
            host,
            device,
            transfers,
        }
    }

    #[test]
    fn the_faster_one_is_found_between_the_points() {
        // On the device the sum takes 10 us whatever its size; with transfers it never pays.
        let table = Crossover::new(vec![
            point(1_000_000, 1_000_000, 10_000, 2_000_000),
            point(1_000, 1_000, 10_000, 20_000),
        ]);
        let faster = |size| table.is_device_faster("a sum", size, Data::There);
        assert_eq!(faster(10), Some(false));
        assert_eq!(faster(9_000), Some(false));
        assert_eq!(faster(11_000), Some(true));
        assert_eq!(faster(u64::MAX), Some(true));
        assert_eq!(
            table.is_device_faster("a sum", 1 << 40, Data::OnHost),
            Some(false)
        );
        assert_eq!(table.is_device_faster("a product", 1000, Data::OnHost), None);
        assert_eq!(
            Crossover::default().is_device_faster("a sum", 1, Data::There),
            None
        );
    }

    #[test]
    fn what_is_kept_is_found() {
        let table = Crossover::new(vec![point(7, 1, 2, 3), point(9, 4, 5, 6)]);
        assert_eq!(Crossover::parse(table.print().as_bytes()), Some(table));
        for bad in [&b"7 1 2"[..], b"7 1 2 x a sum\n", b"\xff", b"7 1 2 3\n"] {
            assert_eq!(Crossover::parse(bad), None);
        }
    }
}
