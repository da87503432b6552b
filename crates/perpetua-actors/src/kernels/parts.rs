//! What the kernel that stays is put together from: parts that know no handler, so that they need not be in its macro. Must not know who
//! calls them in which order; `resident` does.

use perpetua::kernel::atomic::{Ordering, Scope};
use perpetua::prelude::*;

use super::super::context::Entry;

/// Words of a home's mail: room for 32 packets, 28 words each. Four words at a time, eight lanes find theirs in different banks.
pub const MAIL_WORDS: usize = 896;
/// Which three of a packet's words begin with its flags.
const MARK_PART: usize = 2;
/// Words of an actor's record.
const RECORD: usize = 8;

/// A word of the block's shared memory that other lanes write meanwhile.
#[device]
pub fn peek<const N: usize>(words: &[u32; N], at: usize) -> u32 {
    atomic_load_explicit(&words[at], Ordering::Relaxed, Scope::Block)
}

/// Writes a word of the block's shared memory that other lanes read meanwhile.
#[device]
pub fn poke<const N: usize>(words: &mut [u32; N], at: usize, value: u32) {
    atomic_store_explicit(&mut words[at], value, Ordering::Relaxed, Scope::Block);
}

/// Waits for a lock of the block, in turn: `lock` holds how many have asked for it, and how many have had it. The fence pairs with
/// that of the lane that freed it; the other lanes must meet this one behind it.
#[device]
pub fn acquire(lock: &mut [u32; 2]) {
    let mut had = peek(lock, 1);
    let turn = atomic_add_explicit(&mut lock[0], 1, Ordering::Relaxed, Scope::Block);
    while had != turn {
        had = peek(lock, 1);
    }
    thread_fence_block();
}

/// Frees a lock of the block, where the other lanes have met this one behind what they did.
#[device]
pub fn release(lock: &mut [u32; 2]) {
    let next = peek(lock, 1) + 1;
    thread_fence_block();
    poke(lock, 1, next);
}

/// What a home knows, when it comes to its device: the numbers of the next packets from the host, out of its box and out of those for other devices' packets; packets put out
/// and taken out by the host, handlers run, faults, packets refused; its clock.
#[device]
pub fn recall(
    homes: &[u32],
    words: usize,
    devices: u32,
    next: &mut [u32; 10],
    known: &mut [u32; 5],
    stamps: &mut [u64; 1],
) {
    next[0] = homes[words];
    next[1] = atomic_load(&homes[words + 32]);
    if devices != 0 {
        for far in 0..devices as usize {
            next[2 + far] = homes[words + 8 + far];
        }
    }
    known[0] = homes[words + 1];
    known[1] = homes[words + 1];
    known[2] = homes[words + 2];
    known[3] = homes[words + 3];
    known[4] = homes[words + 4];
    stamps[0] = homes[words + 5] as u64 | ((homes[words + 6] as u64) << 32);
}

/// The same, when it leaves.
#[device]
pub fn keep(
    homes: &mut [u32],
    words: usize,
    devices: u32,
    next: &[u32; 10],
    known: &[u32; 5],
    stamps: &[u64; 1],
) {
    homes[words] = next[0];
    if devices != 0 {
        for far in 0..devices as usize {
            homes[words + 8 + far] = next[2 + far];
        }
    }
    homes[words + 1] = known[0];
    homes[words + 2] = known[2];
    homes[words + 3] = known[3];
    homes[words + 4] = known[4];
    homes[words + 5] = stamps[0] as u32;
    homes[words + 6] = (stamps[0] >> 32) as u32;
}

/// A stamp's microseconds from nanoseconds since 1970, or one less. By 2^68 / 125 in two halves, without the lowest product: devices divide
/// slowly.
#[device]
pub fn stamp_at(nanos: u64) -> u64 {
    let low = (nanos >> 3) as u32 as u64;
    let high = nanos >> 35;
    let middle = low * 0x20c4_9ba5 + high * 0xe353_f7cf;
    let quotient = high * 0x20c4_9ba5 + (middle >> 32);
    (quotient >> 4) << 12
}

/// Puts three words of a packet into the mail, which are the `part`th.
///
/// Where they tell of a block, the lane, which has seen their tag, fences: behind the next place where the lanes converge all of them
/// know what the sender has written there (`ring/README.md`).
#[device]
pub fn post(
    mail: &mut [u32; MAIL_WORDS],
    place: u32,
    part: usize,
    vector: &::perpetua::kernel::resident::U32x4,
) {
    let at = place as usize * 28 + part * 3;
    mail[at] = vector.x;
    mail[at + 1] = vector.y;
    mail[at + 2] = vector.z;
    if part == MARK_PART && brings_block(vector.x) {
        thread_fence_system();
    }
}

/// Whether a packet with these flags (its seventh word) brings a block.
#[device]
pub fn brings_block(flags: u32) -> bool {
    (flags & 0x0080_0000) != 0
}

/// How many slots are whole, from the first on, where each has eight lanes that say so.
#[device]
pub fn whole_slots(there: u32) -> u32 {
    (!there).trailing_zeros() / 8
}

/// The home of an actor: of this grid's, or of another one's by the directory; `u32::MAX` where there is none. `inverse`: 2^32 by the number
/// of homes, rounded down.
#[device]
pub fn home_of(
    actor: u32,
    first_actor: u32,
    actor_count: u32,
    first_home: u32,
    home_count: u32,
    inverse: u32,
    directory: &[u32],
) -> u32 {
    let index = actor - first_actor;
    let mut home = u32::MAX;
    if index < actor_count {
        // The quotient, or one less.
        let quotient = ((index as u64 * inverse as u64) >> 32) as u32;
        let mut rest = index - quotient * home_count;
        if rest >= home_count {
            rest -= home_count;
        }
        home = first_home + rest;
    } else if (actor as usize) < directory.len() {
        home = atomic_load(&directory[actor as usize]);
    }
    home
}

/// A packet's place in a ring, or why there is none.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
pub struct Place {
    /// 0, or why there is none (`layout`).
    pub reason: u32,
    /// The first vector of its slot.
    pub slot: u32,
    /// The packet's number plus one.
    pub tag: u32,
}

/// One vector of a slot of a home's ring from the host.
#[device]
pub fn look_at_host(
    ingress: &[::perpetua::kernel::resident::U32x4],
    at: u32,
) -> ::perpetua::kernel::resident::U32x4 {
    atomic_load_explicit(&ingress[at as usize], Ordering::Relaxed, Scope::System)
}

/// One vector of a slot of a home's box; `far`: of one for packets from another device.
#[device]
pub fn look(
    inbox: &[::perpetua::kernel::resident::U32x4],
    peers: &[::perpetua::kernel::resident::U32x4],
    far: bool,
    at: u32,
) -> ::perpetua::kernel::resident::U32x4 {
    if far {
        atomic_load_explicit(&peers[at as usize], Ordering::Relaxed, Scope::System)
    } else {
        atomic_load_explicit(&inbox[at as usize], Ordering::Relaxed, Scope::Device)
    }
}

/// The device whose packets are looked for behind this one's.
#[device]
pub fn next_of(peer: u32, own: u32, devices: u32) -> u32 {
    let next = (peer + 1) % devices;
    if next == own { (next + 1) % devices } else { next }
}

/// Packets taken out of a box; of one on another device, that device tells.
#[device]
pub fn taken_out<const FAR: bool>(words: &[u32], at: usize) -> u32 {
    if FAR {
        atomic_load_explicit(&words[at], Ordering::Relaxed, Scope::System)
    } else {
        atomic_load(&words[at])
    }
}

/// Counts what was taken out of a box, or handled, where its senders look: on this device, or on theirs.
#[device]
pub fn count_out(homes: &mut [u32], links: &mut [u32], far: bool, here: usize, there: u32, count: u32) {
    if far {
        atomic_store_explicit(
            &mut links[there as usize],
            count,
            Ordering::Relaxed,
            Scope::System,
        );
    } else {
        atomic_store(&mut homes[here], count);
    }
}

/// Takes a place in a home's box, where there is one now: the `number`th box of the device, or `FAR` of all devices, whose words are `words` from `at` on. `again`:
/// there was none a moment ago. Who asks for room takes some meanwhile, so of many who ask again and again none might find any: they look first. `held`: what the sender has sent before waits at the host, and this is to go behind it.
#[device]
pub fn place<const FAR: bool>(
    words: &mut [u32],
    at: usize,
    number: u32,
    mask: u32,
    again: bool,
    held: bool,
) -> Place {
    let mut taken = Place {
        reason: 4,
        slot: 0,
        tag: 0,
    };
    if !held && (!again || atomic_load(&words[at + 2]) - taken_out::<FAR>(words, at) <= mask) {
        // Room first, then a ticket: there are never more tickets than room.
        let before = atomic_add(&mut words[at + 2], 1);
        if before - taken_out::<FAR>(words, at) <= mask {
            let ticket = atomic_add(&mut words[at + 1], 1);
            taken.reason = 0;
            taken.slot = (number * (mask + 1) + (ticket & mask)) * 8;
            taken.tag = ticket + 1;
        } else {
            atomic_sub(&mut words[at + 2], 1);
        }
    }
    taken
}

/// Takes a place in a box of another device, as the directory names it; the links of this device begin at `first`.
#[device]
pub fn place_far(links: &mut [u32], first: u32, their: u32, mask: u32, again: bool, held: bool) -> Place {
    let number = their & 0x7fff_ffff;
    place::<true>(links, (first + number * 8) as usize, number, mask, again, held)
}

/// Whether a lane may try again to find room in another home's box: for so many nanoseconds from its first call on, which sets `until`, and as long as
/// its own home need not leave the device. Gives a sign of life.
#[device]
pub fn may_wait(
    orders: &mut [u32],
    reports: &mut [::perpetua::kernel::resident::U32x4],
    own: u32,
    until: &mut u64,
    patience: u64,
) -> bool {
    let now = clock_nanos();
    if *until == 0 {
        *until = now + patience;
    }
    // Relaxed: it only says that others take nothing out any more. It lies in the host's memory, so waiting costs a microsecond.
    let leaves = atomic_load_explicit(&orders[own as usize * 16 + 1], Ordering::Relaxed, Scope::System);
    pulse(reports, own as usize, now as u32, 1);
    leaves == 0 && now <= *until
}

/// The payload of the packet that lies in the mail from this word on.
#[device]
pub fn payload(mail: &[u32; MAIL_WORDS], at: usize) -> [u32; 16] {
    [
        mail[at + 8],
        mail[at + 9],
        mail[at + 10],
        mail[at + 11],
        mail[at + 12],
        mail[at + 13],
        mail[at + 14],
        mail[at + 15],
        mail[at + 16],
        mail[at + 17],
        mail[at + 18],
        mail[at + 19],
        mail[at + 20],
        mail[at + 21],
        mail[at + 22],
        mail[at + 23],
    ]
}

/// The packet in the mail, on its way back to the host: it is done.
#[device]
pub fn closing(mail: &[u32; MAIL_WORDS], at: usize) -> Entry {
    Entry {
        destination: mail[at],
        type_id: mail[at + 2],
        correlation: mail[at + 3],
        flags: 6,
        payload: payload(mail, at),
    }
}

/// A packet as it lies in a slot: its words by threes, each three with the tag.
#[device]
pub fn packet_of(
    entry: &Entry,
    from: u32,
    note: u32,
    stamp: u64,
    tag: u32,
) -> [::perpetua::kernel::resident::U32x4; 8] {
    [
        ::perpetua::kernel::resident::U32x4 {
            x: entry.destination,
            y: from,
            z: entry.type_id,
            w: tag,
        },
        ::perpetua::kernel::resident::U32x4 {
            x: entry.correlation,
            y: stamp as u32,
            z: (stamp >> 32) as u32,
            w: tag,
        },
        ::perpetua::kernel::resident::U32x4 {
            x: entry.flags,
            y: note,
            z: entry.payload[0],
            w: tag,
        },
        ::perpetua::kernel::resident::U32x4 {
            x: entry.payload[1],
            y: entry.payload[2],
            z: entry.payload[3],
            w: tag,
        },
        ::perpetua::kernel::resident::U32x4 {
            x: entry.payload[4],
            y: entry.payload[5],
            z: entry.payload[6],
            w: tag,
        },
        ::perpetua::kernel::resident::U32x4 {
            x: entry.payload[7],
            y: entry.payload[8],
            z: entry.payload[9],
            w: tag,
        },
        ::perpetua::kernel::resident::U32x4 {
            x: entry.payload[10],
            y: entry.payload[11],
            z: entry.payload[12],
            w: tag,
        },
        ::perpetua::kernel::resident::U32x4 {
            x: entry.payload[13],
            y: entry.payload[14],
            z: entry.payload[15],
            w: tag,
        },
    ]
}

/// Writes a packet into a slot of a box, whose first vector is `at`. (One after the other: indices that are constants cost a device nothing.)
#[device]
pub fn put_here(
    inbox: &mut [::perpetua::kernel::resident::U32x4],
    at: usize,
    packet: &[::perpetua::kernel::resident::U32x4; 8],
) {
    atomic_store_explicit(&mut inbox[at], packet[0], Ordering::Relaxed, Scope::Device);
    atomic_store_explicit(&mut inbox[at + 1], packet[1], Ordering::Relaxed, Scope::Device);
    atomic_store_explicit(&mut inbox[at + 2], packet[2], Ordering::Relaxed, Scope::Device);
    atomic_store_explicit(&mut inbox[at + 3], packet[3], Ordering::Relaxed, Scope::Device);
    atomic_store_explicit(&mut inbox[at + 4], packet[4], Ordering::Relaxed, Scope::Device);
    atomic_store_explicit(&mut inbox[at + 5], packet[5], Ordering::Relaxed, Scope::Device);
    atomic_store_explicit(&mut inbox[at + 6], packet[6], Ordering::Relaxed, Scope::Device);
    atomic_store_explicit(&mut inbox[at + 7], packet[7], Ordering::Relaxed, Scope::Device);
}

/// The same for a slot of the ring to the host, or of a box on another device.
#[device]
pub fn put_away(
    egress: &mut [::perpetua::kernel::resident::U32x4],
    at: usize,
    packet: &[::perpetua::kernel::resident::U32x4; 8],
) {
    atomic_store_explicit(&mut egress[at], packet[0], Ordering::Relaxed, Scope::System);
    atomic_store_explicit(&mut egress[at + 1], packet[1], Ordering::Relaxed, Scope::System);
    atomic_store_explicit(&mut egress[at + 2], packet[2], Ordering::Relaxed, Scope::System);
    atomic_store_explicit(&mut egress[at + 3], packet[3], Ordering::Relaxed, Scope::System);
    atomic_store_explicit(&mut egress[at + 4], packet[4], Ordering::Relaxed, Scope::System);
    atomic_store_explicit(&mut egress[at + 5], packet[5], Ordering::Relaxed, Scope::System);
    atomic_store_explicit(&mut egress[at + 6], packet[6], Ordering::Relaxed, Scope::System);
    atomic_store_explicit(&mut egress[at + 7], packet[7], Ordering::Relaxed, Scope::System);
}

/// Counts what a run of a handler sent, and what its outbox had no room for.
#[device]
pub fn count_sends(actors: &mut [u32], actor: u32, sent: u32, refused: u32) {
    let at = actor as usize * RECORD;
    if sent != 0 {
        let all = actors[at + 2] + sent;
        actors[at + 2] = all;
        if all < sent {
            actors[at + 5] += 1;
        }
    }
    if refused != 0 {
        actors[at + 3] += refused;
    }
}

/// Counts a handler's run, and how long its message was on its way, in microseconds: four buckets for each power of two.
#[device]
pub fn count_run(actors: &mut [u32], actor: u32, known: u32, latencies: &mut [u32], row: usize, waited: u64) {
    if known != 0 {
        let at = actor as usize * RECORD;
        let runs = actors[at + 1] + 1;
        actors[at + 1] = runs;
        if runs == 0 {
            actors[at + 4] += 1;
        }
    }
    let short = waited.min(0xff_ffff) as u32;
    let power = 29 - (short | 4).leading_zeros();
    let bucket = (power * 4 + (short >> power)) as usize;
    atomic_add_explicit(
        &mut latencies[row * 96 + bucket],
        1,
        Ordering::Relaxed,
        Scope::Device,
    );
}

/// Tells the host that a home lives: by a number that differs from the last one it was told, and whether it waits for room.
#[device]
pub fn pulse(reports: &mut [::perpetua::kernel::resident::U32x4], home: usize, sign: u32, waits: u32) {
    let vector = ::perpetua::kernel::resident::U32x4 {
        x: sign,
        y: waits,
        z: 0,
        w: 0,
    };
    tell_host(reports, home * 4 + 2, vector);
}

/// Tells the host something.
#[device]
pub fn tell_host(
    reports: &mut [::perpetua::kernel::resident::U32x4],
    at: usize,
    vector: ::perpetua::kernel::resident::U32x4,
) {
    atomic_store_explicit(&mut reports[at], vector, Ordering::Relaxed, Scope::System);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_microseconds() {
        // Sixty years.
        for nanos in (0..1_000_000u64).map(|i| i * 1_893_417_120_000 + i % 1009) {
            let micros = stamp_at(nanos) >> 12;
            assert!(
                (nanos / 1000).wrapping_sub(micros) <= 1,
                "{nanos} ns are {micros} us"
            );
        }
    }
}
