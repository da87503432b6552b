//! Where what lies in the buffers that a host and its resident kernels share. Must not know which side writes when: `ring/README.md`
//! says that.
//!
//! A *home* is a block that stays on the device and hosts actors. Each home has two rings in the host's memory, one in
//! and one out, and one in the device's memory for packets of other actors; where
//! devices reach each other's memory, one more there for each other device, whose words lie with the senders.

/// Lanes of a home.
pub const HOME_LANES: u32 = 128;
/// Vectors of 16 bytes in a slot: a packet's 24 words by threes, each with the slot's tag behind them.
pub const SLOT_VECTORS: usize = 8;

/// Words of the host's orders to a home, in host memory.
pub const ORDER_WORDS: usize = 16;
/// Packets that the host has taken out of the home's outgoing ring.
pub const ORDER_TAKEN: usize = 0;
/// Not 0 while the home is to leave the device: it waits for nobody.
pub const ORDER_LEAVE: usize = 1;

/// Vectors of a home's reports, in host memory. The first: packets taken in, handlers run, packets put out, polls. The
/// second: 1 when it has left the device, faults, packets that found no room, packets from other actors. The third: polls, told now
/// and then by a home that has nothing to do; what the first tells comes from the lock's holder alone, since another's could be old.
pub const REPORT_VECTORS: usize = 4;

/// Words that a home keeps while it is not on the device, in device memory; from
/// [`BOX_TAKEN`] on other homes read.
pub const HOME_WORDS: usize = 64;
/// Number of the next packet from the host.
pub const NEXT_IN: usize = 0;
/// Number of the next packet to the host.
pub const NEXT_OUT: usize = 1;
/// Handlers run.
pub const HANDLED: usize = 2;
/// Faults.
pub const FAULTS: usize = 3;
/// Packets that found no room at their destination in time.
pub const REFUSED: usize = 4;
/// The home's clock, lower half.
pub const CLOCK_LOW: usize = 5;
/// The home's clock, upper half.
pub const CLOCK_HIGH: usize = 6;
/// From here on, of each other device, the number of the next packet from there.
pub const NEXT_FAR: usize = 8;
/// Packets taken out of the home's box. In a cache line that other homes read.
pub const BOX_TAKEN: usize = 32;
/// Tickets to the home's box that were given out.
pub const BOX_TICKET: usize = 33;
/// Room in the home's box that was taken, which comes before a ticket; while no home runs, as many as tickets.
pub const BOX_RESERVED: usize = 34;

/// Packets out of the home's box that were handled, with what their handlers sent.
pub const BOX_DONE: usize = 35;

/// Words of the link to a home on another device, in the sender's device's memory, in the order of those of a box from [`BOX_TAKEN`] on: the
/// receiver stores the first and the last of them, over the link between the devices.
pub const LINK_WORDS: usize = 8;
/// In the directory: the actor's home is on another device, and the other bits are the number of its box there, of all devices' boxes.
pub const IS_FAR: u32 = 1 << 31;
/// Devices whose homes may have boxes for each other.
pub const MOST_DEVICES: usize = 8;

/// Words of an actor's record, in device memory: its state of life, handlers run to their end, what these sent, what their outboxes had no
/// room for; then the upper halves of the second and the third; then how many packets have left it because a box was full ([`REASON_FULL`]). The last
/// one fills a sector, so that no record lies in two.
pub const ACTOR_WORDS: usize = 8;

/// Buckets of a row of latencies, from sending to the handler's begin in microseconds: values below 8 have one each, above that
/// each power of two has four.
pub const LATENCY_BUCKETS: usize = 96;

/// The command that makes a home leave the device.
pub const COMMAND_PARK: u32 = 1;
/// The command that sets the destination's state of life to the payload's first word. It becomes active only if the second word is the number of packets
/// that have left it because a box was full: else the host has not delivered all of them, and says so again when it has.
pub const COMMAND_BECOME: u32 = 2;
/// The command that gives the destination its first state again, wherever it is in its life.
pub const COMMAND_RESTART: u32 = 3;

/// An undelivered packet's reason, in the lowest eight bits of the header's last word, the packet's kind in the next eight: the destination does not take
/// messages now.
pub const REASON_INACTIVE: u32 = 1;
/// Its deadline had passed.
pub const REASON_EXPIRED: u32 = 2;
/// The handler takes no such type.
pub const REASON_FOREIGN: u32 = 3;
/// The destination's box had no room, as long as its sender's home could wait: from then on the sender is deactivated on the device, and what it sends
/// comes out like this. The host delivers it in order, and activates the sender behind it.
pub const REASON_FULL: u32 = 4;
/// There is no such destination.
pub const REASON_UNKNOWN: u32 = 5;
