//! What can be said about actors when they are launched. Must not know engines.

use std::time::Duration;

use perpetua_device::layout::with_bytes;
use perpetua_ir::front::rust::{GpuType, TypeDesc};

use super::group::{Group, GroupTelemetry};
use crate::delivery::{Deliveries, Delivery};
use crate::error::{ActorError, Result};
use crate::handler::{Handler, Takes};
use crate::message::RingMessage;
use crate::message::{ActorId, priority};
use crate::supervise::{OnFault, Supervision};
use crate::tick::Tick;

/// Messages that a mailbox holds unless said otherwise.
pub const QUEUE_CAPACITY: usize = 1024;
/// Deliveries of a message, at most, unless said otherwise.
const MAX_DELIVERIES: u32 = 3;
/// Lanes that run a handler together unless said otherwise.
const BLOCK_SIZE: u32 = 1;

/// How actors are launched: their handler, how many there are, what they begin with.
///
/// Without a handler the one registered under the actor's own name is taken (`PerpetuaRuntime::register`), or else one that gives back
/// what it gets ([`echo`](crate::echo)).
///
/// ```
/// use perpetua::actors::OnFault;
/// use std::time::Duration;
/// # use perpetua::actors::{Context, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel};
/// # use perpetua::prelude::*;
/// # #[derive(Clone, Copy, GpuType, RingMessage)]
/// # #[repr(C)]
/// # struct Add {
/// #     amount: u32,
/// # }
/// # #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
/// # #[repr(C)]
/// # struct Total {
/// #     sum: u32,
/// # }
/// # #[ring_kernel]
/// # fn counter(_ctx: &mut Context, sum: &mut u32, message: Add) -> Total {
/// #     *sum += message.amount;
/// #     Total { sum: *sum }
/// # }
/// // `counter` is a #[ring_kernel] that adds up.
/// let options = LaunchOptions::new(counter::handler())
///     .with_actors(3)
///     .with_state(100u32)
///     .with_queue_capacity(64)
///     .with_deadline(Duration::from_secs(1))
///     .with_on_fault(OnFault::Transactional);
/// let runtime = PerpetuaRuntime::builder().build_blocking()?;
/// let counters = runtime.launch_blocking("counters", options)?;
/// let total: Total = counters.actor(2)?.ask_blocking(&Add { amount: 5 })?;
/// assert_eq!(total, Total { sum: 105 });
/// runtime.shutdown_blocking()?;
/// # Ok::<(), perpetua::actors::ActorError>(())
/// ```
#[derive(Clone)]
pub struct LaunchOptions {
    handler: Option<Handler>,
    actors: u32,
    capacity: usize,
    block_size: u32,
    priority: u8,
    state: Option<(TypeDesc, Vec<u8>)>,
    deadline: Option<Duration>,
    run_limit: Option<Duration>,
    device: usize,
    tick: Option<Duration>,
    supervision: Supervision,
    on_fault: OnFault,
    delivery: Delivery,
    max_deliveries: u32,
    supervisor: Option<ActorId>,
    auto_activate: bool,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        LaunchOptions {
            handler: None,
            actors: 1,
            capacity: QUEUE_CAPACITY,
            block_size: BLOCK_SIZE,
            priority: priority::NORMAL,
            state: None,
            deadline: None,
            run_limit: None,
            device: 0,
            tick: None,
            supervision: Supervision::Manual,
            on_fault: OnFault::Transactional,
            delivery: Delivery::AtMostOnce,
            max_deliveries: MAX_DELIVERIES,
            supervisor: None,
            auto_activate: true,
        }
    }
}

impl LaunchOptions {
    /// For actors that run this handler: `LaunchOptions::new(counter::handler())`.
    #[must_use]
    pub fn new(handler: Handler) -> LaunchOptions {
        LaunchOptions::default().with_handler(handler)
    }

    /// Another handler.
    #[must_use]
    pub fn with_handler(mut self, handler: Handler) -> LaunchOptions {
        self.handler = Some(handler);
        self
    }

    /// So many actors, each with a state and a mailbox of its own: `KernelHandle::actor` gives each.
    #[must_use]
    pub fn with_actors(mut self, actors: u32) -> LaunchOptions {
        self.actors = actors;
        self
    }

    /// Messages that wait at most, in the mailbox and on their way to the host: a power of two.
    #[must_use]
    pub fn with_queue_capacity(mut self, messages: usize) -> LaunchOptions {
        self.capacity = messages;
        self
    }

    /// A capacity for so many messages a second, of an actor that may be busy elsewhere for this long: the power of two that holds what comes
    /// meanwhile, at least 16. More than any mailbox takes is refused at launch.
    #[must_use]
    pub fn with_queue_for(self, messages_per_second: u64, busy: Duration) -> LaunchOptions {
        let meanwhile = u128::from(messages_per_second) * busy.as_micros() / 1_000_000;
        let capacity = usize::try_from(meanwhile).ok().map(|messages| messages.max(16));
        let capacity = capacity.and_then(usize::checked_next_power_of_two);
        self.with_queue_capacity(capacity.unwrap_or(usize::MAX))
    }

    /// Lanes of a GPU that run the handler together, where it is written for that (`#[ring_kernel(group)]`), at most 32: a resident
    /// handler's group is a subgroup. On the CPU, and where handlers run in batches, it is always one; `ctx.group_size()` tells.
    #[must_use]
    pub fn with_block_size(mut self, lanes: u32) -> LaunchOptions {
        self.block_size = lanes;
        self
    }

    /// Where many actors have messages, those of higher priority run first (`priority::HIGH`).
    #[must_use]
    pub fn with_priority(mut self, priority: u8) -> LaunchOptions {
        self.priority = priority;
        self
    }

    /// The state that each actor begins with, and begins again with by `KernelHandle::restart`; else all its bytes are zero.
    #[must_use]
    pub fn with_state<T: GpuType>(mut self, state: T) -> LaunchOptions {
        self.state = Some((T::describe(), with_bytes(&[state], <[u8]>::to_vec)));
        self
    }

    /// The actors stay launched, and their messages wait, until `KernelHandle::activate`.
    #[must_use]
    pub fn without_auto_activate(mut self) -> LaunchOptions {
        self.auto_activate = false;
        self
    }

    /// On which of the runtime's devices the actors live: 0, unless said otherwise, is the one that its builder was given first
    /// ([`RuntimeBuilder::and_device`](crate::runtime::RuntimeBuilder::and_device)). Actors of all devices reach each other. Restored by a
    /// runtime of fewer devices, they live on its last one.
    #[must_use]
    pub fn on_device(mut self, device: usize) -> LaunchOptions {
        self.device = device;
        self
    }

    /// Each actor gets a [`Tick`] this often, while it is active and has room.
    #[must_use]
    pub fn with_tick(mut self, period: Duration) -> LaunchOptions {
        self.tick = Some(period);
        self
    }

    /// A message that has waited for longer is not handled any more: it becomes a dead letter.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> LaunchOptions {
        self.deadline = Some(deadline);
        self
    }

    /// A handler that runs for longer is faulted. On the CPU its thread cannot be stopped: it is left alone and replaced, and what
    /// it does to its state is seen by nobody. In a resident kernel its loops look at the clock; there the limit is five seconds unless
    /// it is said here. In batches, where there is no clock, its loops count their turns: a handler that needs many is begun anew with
    /// more of them, from the state before the message, until the launch of its batch takes as long as the limit says.
    #[must_use]
    pub fn with_run_limit(mut self, limit: Duration) -> LaunchOptions {
        self.run_limit = Some(limit);
        self
    }

    /// What happens when the handler faults.
    #[must_use]
    pub fn with_supervision(mut self, supervision: Supervision) -> LaunchOptions {
        self.supervision = supervision;
        self
    }

    /// With which state a fault leaves the actor: with the one before the message, unless said otherwise.
    #[must_use]
    pub fn with_on_fault(mut self, on_fault: OnFault) -> LaunchOptions {
        self.on_fault = on_fault;
        self
    }

    /// How often messages are delivered that do not say otherwise ([`SendOptions`](crate::SendOptions)); those of other actors never do.
    #[must_use]
    pub fn with_delivery(mut self, delivery: Delivery) -> LaunchOptions {
        self.delivery = delivery;
        self
    }

    /// How often a message is delivered at most, where it is delivered at least once: 1 to 63 times, 3 unless said otherwise. Then it
    /// is a dead letter.
    #[must_use]
    pub fn with_max_deliveries(mut self, deliveries: u32) -> LaunchOptions {
        self.max_deliveries = deliveries;
        self
    }

    /// To whom [`Supervision::Escalate`] escalates.
    #[must_use]
    pub fn with_supervisor(mut self, supervisor: ActorId) -> LaunchOptions {
        self.supervisor = Some(supervisor);
        self
    }

    pub(crate) fn handler(&self) -> Option<Handler> {
        self.handler
    }

    pub(crate) fn auto_activates(&self) -> bool {
        self.auto_activate
    }

    /// The group that these options describe; its actors have no numbers yet.
    ///
    /// # Errors
    /// What does not fit, by name.
    pub(crate) fn group(&self, name: &str, handler: Handler) -> Result<Group> {
        let capacity = self.capacity;
        if !capacity.is_power_of_two() || !(2..=1 << 24).contains(&capacity) {
            return Err(ActorError::Capacity { capacity });
        }
        let max_deliveries = match u8::try_from(self.max_deliveries) {
            Ok(most @ 1..=Deliveries::MOST) => most,
            _ => {
                return Err(ActorError::MaxDeliveries {
                    deliveries: self.max_deliveries,
                    most: Deliveries::MOST,
                });
            }
        };
        let takes = (handler.takes)();
        check_numbers(name, &takes)?;
        let mut group = Group {
            name: name.into(),
            first: ActorId(0),
            count: self.actors.max(1),
            handler,
            takes,
            capacity,
            block_size: self.block_size,
            device: self.device,
            priority: self.priority,
            initial: Vec::new(),
            deadline: self.deadline,
            run_limit: self.run_limit,
            tick: self.tick,
            supervision: self.supervision,
            on_fault: self.on_fault,
            delivery: self.delivery,
            max_deliveries,
            supervisor: self.supervisor,
            telemetry: GroupTelemetry::default(),
            gone: Default::default(),
            handles: Default::default(),
            any_left: Default::default(),
        };
        if self.tick.is_some() {
            group.check_type(group.first, Tick::TYPE_ID, Tick::NAME)?;
        }
        let expected = (handler.state_type)();
        group.initial = match &self.state {
            Some((found, bytes)) if *found == expected => bytes.clone(),
            Some((found, _)) => return Err(group.wrong_state(&expected, found.to_string())),
            None => vec![0; handler.state_size],
        };
        group.check_state(&group.initial)?;
        Ok(group)
    }
}

// Types of one number would be taken for each other.
fn check_numbers(name: &str, takes: &[Takes]) -> Result<()> {
    for (i, one) in takes.iter().enumerate() {
        let same = |other: &&Takes| {
            let differs = (other.path, other.version, other.layout) != (one.path, one.version, one.layout);
            other.type_id == one.type_id && differs
        };
        if let Some(other) = takes[..i].iter().find(same) {
            return Err(ActorError::SameNumber {
                actor: format!("`{name}`"),
                type_id: one.type_id,
                types: [other.described(), one.described()],
            });
        }
    }
    Ok(())
}

impl Group {
    fn wrong_state(&self, expected: &TypeDesc, found: String) -> ActorError {
        ActorError::State {
            actor: format!("`{}`", self.name),
            expected: expected.to_string(),
            found,
        }
    }

    /// An error unless these bytes are a state of the handler's type.
    pub(crate) fn check_state(&self, bytes: &[u8]) -> Result<()> {
        let expected = (self.handler.state_type)();
        if bytes.len() != self.handler.state_size {
            return Err(self.wrong_state(&expected, format!("{} bytes", bytes.len())));
        }
        expected
            .check_bytes(bytes)
            .map_err(|why| self.wrong_state(&expected, format!("bytes that are no value of it ({why})")))
    }

    /// An error unless `T` is the type of the handler's state.
    pub(crate) fn check_state_type<T: GpuType>(&self) -> Result<()> {
        let expected = (self.handler.state_type)();
        if T::describe() == expected {
            return Ok(());
        }
        Err(self.wrong_state(&expected, T::describe().to_string()))
    }
}
