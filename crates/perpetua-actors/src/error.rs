//! What can go wrong between actors: cause, values, remedy.

use crate::lifecycle::ActorState;

/// Result of an operation on actors.
pub type Result<T, E = ActorError> = std::result::Result<T, E>;

/// Why an operation on actors failed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ActorError {
    /// A queue's capacity is no power of two.
    #[error("a queue's capacity must be a power of two from 2 to 2^24, not {capacity}: {} is the next", .capacity.checked_next_power_of_two().unwrap_or(1 << 24))]
    Capacity {
        /// The capacity asked for.
        capacity: usize,
    },
    /// Messages cannot be delivered so often.
    #[error(
        "a message is delivered 1 to {most} times at most, not {deliveries}: give `with_max_deliveries` such a number"
    )]
    MaxDeliveries {
        /// The number asked for.
        deliveries: u32,
        /// The highest one.
        most: u8,
    },
    /// The life cycle has no such move.
    #[error(
        "{actor} is {from}: it cannot become {to} (Created → Launched → Active ⇄ Deactivated → Terminated)"
    )]
    IllegalMove {
        /// The actor's name.
        actor: String,
        /// Where it is.
        from: ActorState,
        /// Where it was to go.
        to: ActorState,
    },
    /// Some of many actors could not do it; the others have.
    #[error("{} of {actors} actors of `{name}` could not, the others did: {}", .failed.len(), .failed[0])]
    Several {
        /// The name of all.
        name: String,
        /// How many were to do it.
        actors: u32,
        /// Why each could not, at least one.
        failed: Vec<ActorError>,
    },
    /// The actor's mailbox has no room; the message was not taken.
    #[error(
        "the mailbox of {actor} is full ({capacity} messages): receive its replies, send later, or give it a larger queue"
    )]
    Full {
        /// The actor's name.
        actor: String,
        /// What it holds.
        capacity: usize,
    },
    /// The memory for messages' vectors has no room; the message was not taken.
    #[error(
        "the arena has no room for a message's vectors of {asked} bytes ({free} of {bytes} bytes are free): drop what was received, send later, or build the runtime with more `arena_bytes`"
    )]
    ArenaFull {
        /// Bytes that the message takes there.
        asked: usize,
        /// Bytes that are free, maybe in several places.
        free: usize,
        /// Bytes of the arena.
        bytes: usize,
    },
    /// A message's vectors are elsewhere.
    #[error(
        "the vectors of the message {message} from {actor} are not there: its handler sent them on with another message, or somebody has taken them; send a message with vectors once, and take what is received once"
    )]
    NoVectors {
        /// Who sent it.
        actor: String,
        /// The message's type.
        message: &'static str,
    },
    /// A message was sent to an actor that is gone.
    #[error("{actor} is terminated: launch another before sending")]
    Terminated {
        /// The actor's name.
        actor: String,
    },
    /// No actor has this name or number.
    #[error("there is no {actor}: `launch` it first, or look at the runtime's list")]
    NoSuchActor {
        /// What was asked for.
        actor: String,
    },
    /// The runtime has fewer devices.
    #[error(
        "{actor} was to live on device {device} of a runtime that has {devices}: give the runtime's builder more (`and_device`), or name one that it has, from 0 on"
    )]
    NoSuchDevice {
        /// The actor's name.
        actor: String,
        /// The device asked for.
        device: usize,
        /// How many there are.
        devices: usize,
    },
    /// Two actors cannot have one name.
    #[error("there is an actor called `{name}` already: choose another name, or terminate it")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The handler does not take this type of message.
    #[error("{actor} does not take messages of type {found} (id {type_id}): it takes {takes}")]
    ForeignMessage {
        /// The actor's name.
        actor: String,
        /// The message's type.
        found: String,
        /// Its number.
        type_id: u32,
        /// The types that the handler takes.
        takes: String,
    },
    /// Two types of message that a handler takes have one number.
    #[error(
        "{actor} takes two types of message of number {type_id}: {} and {}; give one of them another `#[message(type_id = n)]`, or none",
        .types[0], .types[1]
    )]
    SameNumber {
        /// The actor's name.
        actor: String,
        /// Their number.
        type_id: u32,
        /// The types.
        types: [String; 2],
    },
    /// The answer has another type than was asked for.
    #[error("{actor} answered with a message of type id {found}, not {expected}")]
    WrongReply {
        /// The actor's name.
        actor: String,
        /// The type id that came.
        found: u32,
        /// The type's name that was expected.
        expected: &'static str,
    },
    /// The handler ran, and gave no answer.
    #[error("{actor} handled the message and gave no reply: `send` it, or let its handler give one back")]
    NoReply {
        /// The actor's name.
        actor: String,
    },
    /// The handler keeps a state of another type.
    #[error("the state of {actor} is {expected}, not {found}")]
    State {
        /// The actor's name.
        actor: String,
        /// The type that its handler keeps.
        expected: String,
        /// The type, or the bytes, that were given.
        found: String,
    },
    /// No answer came in time.
    #[error("{actor} did not answer within {waited:?}{}", if *held { ": it is held, because what it has sent finds no room (answers that nobody receives, a full mailbox or subscription)" } else { "" })]
    Timeout {
        /// The actor's name.
        actor: String,
        /// For how long was waited.
        waited: std::time::Duration,
        /// Whether it handled nothing then because what it has sent found no room.
        held: bool,
    },
    /// The handler faulted on this message.
    #[error("the handler of {actor} faulted: {fault}; restart, restore or terminate the actor")]
    Faulted {
        /// The actor's name.
        actor: String,
        /// What happened and where.
        fault: String,
    },
    /// The runtime has been shut down.
    #[error("the runtime is shut down: build another")]
    ShutDown,
    /// A remote clock is too far ahead.
    #[error(
        "a remote clock is {ahead} us ahead of this one, more than {allowed} us: synchronise the machines' clocks"
    )]
    ClockDrift {
        /// By how much.
        ahead: u64,
        /// How much is allowed.
        allowed: u64,
    },
    /// Numbers that no stamp has.
    #[error(
        "{micros} us and counter {counter} are no stamp, which has 52 bits of microseconds and 12 of counter: carry what is above 4095 into the microseconds"
    )]
    StampRange {
        /// The microseconds.
        micros: u64,
        /// The counter.
        counter: u64,
    },
    /// A clock has given its last stamp.
    #[error(
        "the clock is at the end of its range (the year 2112): set the machine's clock, or drop the stamp that took it there"
    )]
    ClockEnd,
    /// The topic is no topic, or no pattern.
    #[error("`{topic}` is no topic: {cause}")]
    Topic {
        /// What was given.
        topic: String,
        /// What is wrong.
        cause: &'static str,
    },
    /// A checkpoint cannot be used.
    #[error("the checkpoint {path} cannot be used: {cause}")]
    Checkpoint {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The device has no more room for actors.
    #[error(
        "the device has room for {actors} actors in all, for {homes} more homes in a row and for {grids} more launches: build the runtime for more actors, launch many with one call, or terminate some, here or in another runtime of this process"
    )]
    NoRoom {
        /// Homes in a row that are left.
        homes: u32,
        /// Launches that are left.
        grids: u32,
        /// Actors in all.
        actors: u32,
    },
    /// The backend cannot do this.
    #[error("{operation} is not possible on {backend}: {remedy}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// What was asked for.
        operation: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A supervised program has ended badly too often.
    #[error(
        "the supervised program was restarted {restarts} times within {window:?} and has ended again: {last}; see to that, or allow more restarts"
    )]
    Restarts {
        /// Restarts that are allowed.
        restarts: u32,
        /// Within which time.
        window: std::time::Duration,
        /// Why it ended last.
        last: String,
    },
    /// The device layer failed.
    #[error(transparent)]
    Device(#[from] perpetua_device::Error),
    /// The process cannot be looked at as asked.
    #[cfg(not(target_arch = "wasm32"))]
    #[error(transparent)]
    Observe(#[from] crate::telemetry::observe::ObserveError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

perpetua_device::debug_as_display!(ActorError);

impl ActorError {
    /// Whether the device is lost, on which actors run: another runtime, on CUDA in another process, can go on from a checkpoint
    /// ([`supervisor`](crate::supervisor)).
    #[must_use]
    pub fn is_device_lost(&self) -> bool {
        matches!(self, ActorError::Device(error) if error.is_device_lost())
    }
}

impl ActorState {
    /// An error that names the move, unless the actor `actor` may make it.
    pub fn check_move(self, next: ActorState, actor: &str) -> Result<()> {
        if self.may_become(next) {
            return Ok(());
        }
        Err(ActorError::IllegalMove {
            actor: actor.into(),
            from: self,
            to: next,
        })
    }
}
