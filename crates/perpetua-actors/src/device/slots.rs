//! How a packet lies in a slot of a ring: its 24 words by threes in eight vectors of 16 bytes, each with the slot's tag
//! behind them. A vector is read and written at once, so a reader that sees the tag it expects in all eight has the whole
//! packet: no other word says that it is there. Must not know which slot is whose.

use perpetua::prelude::*;

/// Writes the two functions that reach slots in memory of one scope.
macro_rules! slots {
    ($read:ident, $write:ident, $scope:ident, $memory:literal) => {
        #[doc = concat!("Reads the slot at `at` of a ring in ", $memory, "; true where it holds the packet with this tag.")]
        #[device]
        #[must_use]
        pub fn $read(ring: &[U32x4], at: usize, tag: u32) -> ([u32; 24], bool) {
            let a = atomic_load_explicit(&ring[at], Ordering::Relaxed, Scope::$scope);
            let b = atomic_load_explicit(&ring[at + 1], Ordering::Relaxed, Scope::$scope);
            let c = atomic_load_explicit(&ring[at + 2], Ordering::Relaxed, Scope::$scope);
            let d = atomic_load_explicit(&ring[at + 3], Ordering::Relaxed, Scope::$scope);
            let e = atomic_load_explicit(&ring[at + 4], Ordering::Relaxed, Scope::$scope);
            let f = atomic_load_explicit(&ring[at + 5], Ordering::Relaxed, Scope::$scope);
            let g = atomic_load_explicit(&ring[at + 6], Ordering::Relaxed, Scope::$scope);
            let h = atomic_load_explicit(&ring[at + 7], Ordering::Relaxed, Scope::$scope);
            let wrong = (a.w ^ tag)
                | (b.w ^ tag)
                | (c.w ^ tag)
                | (d.w ^ tag)
                | (e.w ^ tag)
                | (f.w ^ tag)
                | (g.w ^ tag)
                | (h.w ^ tag);
            let words = [
                a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z, d.x, d.y, d.z, e.x, e.y, e.z, f.x, f.y, f.z,
                g.x, g.y, g.z, h.x, h.y, h.z,
            ];
            (words, wrong == 0)
        }

        #[doc = concat!("Writes a packet with this tag to the slot at `at` of a ring in ", $memory, ".")]
        #[device]
        pub fn $write(ring: &mut [U32x4], at: usize, tag: u32, p: [u32; 24]) {
            let a = vector(p[0], p[1], p[2], tag);
            let b = vector(p[3], p[4], p[5], tag);
            let c = vector(p[6], p[7], p[8], tag);
            let d = vector(p[9], p[10], p[11], tag);
            let e = vector(p[12], p[13], p[14], tag);
            let f = vector(p[15], p[16], p[17], tag);
            let g = vector(p[18], p[19], p[20], tag);
            let h = vector(p[21], p[22], p[23], tag);
            atomic_store_explicit(&mut ring[at], a, Ordering::Relaxed, Scope::$scope);
            atomic_store_explicit(&mut ring[at + 1], b, Ordering::Relaxed, Scope::$scope);
            atomic_store_explicit(&mut ring[at + 2], c, Ordering::Relaxed, Scope::$scope);
            atomic_store_explicit(&mut ring[at + 3], d, Ordering::Relaxed, Scope::$scope);
            atomic_store_explicit(&mut ring[at + 4], e, Ordering::Relaxed, Scope::$scope);
            atomic_store_explicit(&mut ring[at + 5], f, Ordering::Relaxed, Scope::$scope);
            atomic_store_explicit(&mut ring[at + 6], g, Ordering::Relaxed, Scope::$scope);
            atomic_store_explicit(&mut ring[at + 7], h, Ordering::Relaxed, Scope::$scope);
        }
    };
}

slots!(read_from_host, write_to_host, System, "the host's memory");
slots!(read_from_device, write_to_device, Device, "the device's memory");

#[device]
fn vector(x: u32, y: u32, z: u32, w: u32) -> U32x4 {
    U32x4 { x, y, z, w }
}

/// The payload of a packet.
#[device]
#[must_use]
pub fn payload_of(p: [u32; 24]) -> [u32; 16] {
    [
        p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15], p[16], p[17], p[18], p[19], p[20], p[21],
        p[22], p[23],
    ]
}
