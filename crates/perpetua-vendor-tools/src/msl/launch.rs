//! What is run, and every way in which that can fail.

/// A launch: sizes, memory and schedule.
#[derive(Clone, Copy, Debug)]
pub struct MslLaunch {
    /// Threadgroups in each dimension.
    pub groups: [u32; 3],
    /// Threads in each dimension of a threadgroup, 1,024 in all at most.
    pub threads: [u32; 3],
    /// Bytes of dynamic threadgroup memory behind each `[[threadgroup(n)]]` parameter.
    pub threadgroup_bytes: u32,
    /// Lanes of a SIMD group, a power of two up to 64; Apple's GPUs have 32.
    pub simd_width: u32,
    /// The order in which lanes run between two barriers; a kernel that lacks a barrier gives different
    /// answers in different orders.
    pub order: LaneOrder,
}

impl MslLaunch {
    /// A launch of `groups` groups of `threads` threads with no dynamic threadgroup memory, 32 lanes a SIMD group,
    /// lanes in ascending order.
    pub fn new(groups: [u32; 3], threads: [u32; 3]) -> Self {
        Self {
            groups,
            threads,
            threadgroup_bytes: 0,
            simd_width: 32,
            order: LaneOrder::Ascending,
        }
    }
}

/// The order in which lanes run between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneOrder {
    /// Lane 0 first.
    Ascending,
    /// Lane 0 last.
    Descending,
}

/// Why a launch did not end well. The buffers keep what they had before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MslRunError {
    /// A size that Metal refuses.
    #[error("{what} is {value}; {bound}")]
    Size {
        /// What has that size.
        what: &'static str,
        /// The size.
        value: u64,
        /// What is allowed.
        bound: &'static str,
    },
    /// The kernel names a buffer slot that the launch has no buffer for.
    #[error("the kernel reads buffer slot {slot}, the launch has {given} buffers")]
    Unbound {
        /// The kernel's slot.
        slot: u32,
        /// Buffers given.
        given: usize,
    },
    /// Undefined behaviour, found where it happened.
    #[error("{file}:{line}: undefined behaviour in threadgroup {group:?}, lane {lane}: {what}")]
    Undefined {
        /// `program.metal`, or the shim for an operation of its own on the kernel's values.
        file: String,
        /// The line in that file.
        line: u32,
        /// What the kernel did.
        what: String,
        /// The threadgroup's position.
        group: [u32; 3],
        /// The lane's index in the group.
        lane: u32,
    },
    /// Some lanes wait at a threadgroup barrier that others cannot reach.
    #[error(
        "in threadgroup {group:?} {waiting} of {lanes} lanes wait at the barrier in line {line}, the others {others}"
    )]
    Barrier {
        /// The threadgroup's position.
        group: [u32; 3],
        /// The barrier's line in the source.
        line: u32,
        /// Lanes that wait there.
        waiting: usize,
        /// Lanes of the group.
        lanes: usize,
        /// What the rest did instead.
        others: String,
    },
    /// Lanes repeat atomics without end, waiting for what no lane will write.
    #[error("lanes of threadgroup {group:?} repeat atomic operations without end")]
    Stuck {
        /// The threadgroup's position.
        group: [u32; 3],
    },
    /// A store before the start or past the end of a buffer.
    #[error("the kernel wrote {side} of buffer {slot} ({length} bytes)")]
    OutOfBounds {
        /// The buffer's slot, or that of dynamic threadgroup memory counted on from the buffers.
        slot: usize,
        /// Its length in bytes.
        length: usize,
        /// Before its start or past its end.
        side: &'static str,
    },
    /// A read-only buffer changed.
    #[error("the kernel wrote to buffer {slot}, which it declares constant")]
    ReadOnly {
        /// The buffer's slot.
        slot: usize,
    },
    /// No stack for a lane.
    #[error("no stack for a lane: {0}")]
    Stack(String),
}
