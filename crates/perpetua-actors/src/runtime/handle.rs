//! What users hold of an actor, or of many of one launch. Must not know engines.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use perpetua_device::layout;
use perpetua_ir::front::rust::GpuType;
use tracing::Instrument;

use super::asks::Pending;
use super::core::{Core, deadline_micros};
use super::engine::Refusal;
use super::group::Group;
use super::output::{Receive, Received};
use super::outputs::Output;
use super::stream::OutputStream;
use crate::delivery::{Deliveries, Delivery};
use crate::error::{ActorError, Result};
use crate::lifecycle::ActorState;
use crate::message::{ActorId, Kind, Packet, RingMessage};
use crate::pubsub::{SubscribeOptions, Subscription};
use crate::telemetry::ActorMetrics;
use crate::topic::Topic;
use crate::vectors::Message;

/// An actor, or the actors of one launch. Clones are the same actors.
///
/// The life cycle's moves and [`KernelHandle::metrics`] are about all actors of the handle: a move is made by every one that can make it,
/// and [`ActorError::Several`] names the rest. Messages and states are about the first; [`KernelHandle::actor`] gives each of many.
#[derive(Clone)]
pub struct KernelHandle {
    pub(super) core: Arc<Core>,
    pub(super) group: Arc<Group>,
    pub(super) first: ActorId,
    pub(super) count: u32,
    _hold: Hold,
}

/// Counts the handles of a launch: when the last one is gone, nobody takes what its terminated actors have sent to the host.
struct Hold(Arc<Core>, Arc<Group>);

impl Hold {
    fn new(core: &Arc<Core>, group: &Arc<Group>) -> Hold {
        group.handles.fetch_add(1, Ordering::SeqCst);
        Hold(Arc::clone(core), Arc::clone(group))
    }
}

impl Clone for Hold {
    fn clone(&self) -> Hold {
        Hold::new(&self.0, &self.1)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Hold(core, group) = self;
        // SeqCst, as in `Core::remove`: the last one sees that an actor has left, or whoever removes it sees that this was the last.
        if group.handles.fetch_sub(1, Ordering::SeqCst) == 1 && group.any_left.load(Ordering::SeqCst) {
            group
                .actors()
                .for_each(|actor| core.host.give_up_outputs(group, actor));
        }
    }
}

/// What one message may say of itself.
///
/// ```
/// use perpetua::actors::SendOptions;
/// use perpetua::actors::message::priority;
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
/// let runtime = PerpetuaRuntime::builder().build_blocking()?;
/// let counter = runtime.launch_blocking("counter", LaunchOptions::new(counter::handler()))?;
/// let options = SendOptions {
///     priority: Some(priority::HIGH),
///     deadline: Some(Duration::from_secs(60)), // later it is a dead letter
///     ..SendOptions::default()
/// };
/// counter.send_with(&Add { amount: 2 }, options)?;
/// let total: Total = counter.ask_blocking(&Add { amount: 3 })?;
/// assert_eq!(total, Total { sum: 5 });
/// runtime.shutdown_blocking()?;
/// # Ok::<(), perpetua::actors::ActorError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOptions {
    /// Higher goes first; else what the message says, else `priority::NORMAL`.
    pub priority: Option<u8>,
    /// Not worth handling after this; else what the launch's options say.
    pub deadline: Option<Duration>,
    /// How often it is delivered; else what the launch's options say.
    pub delivery: Option<Delivery>,
}

impl KernelHandle {
    pub(super) fn new(core: &Arc<Core>, group: &Arc<Group>) -> KernelHandle {
        KernelHandle {
            core: Arc::clone(core),
            group: Arc::clone(group),
            first: group.first,
            count: group.count,
            _hold: Hold::new(core, group),
        }
    }

    /// The first actor's number.
    pub fn id(&self) -> ActorId {
        self.first
    }

    /// The name that it was launched under.
    pub fn name(&self) -> &str {
        &self.group.name
    }

    /// How many actors these are.
    pub fn actors(&self) -> u32 {
        self.count
    }

    /// Lanes that run the handler together, as asked for.
    pub fn block_size(&self) -> u32 {
        self.group.block_size
    }

    /// The actor number `index` of these.
    pub fn actor(&self, index: u32) -> Result<KernelHandle> {
        if index >= self.count {
            return Err(ActorError::NoSuchActor {
                actor: format!(
                    "`{}[{index}]`, of which there are {}",
                    self.group.name, self.count
                ),
            });
        }
        Ok(KernelHandle {
            first: ActorId(self.first.0 + index),
            count: 1,
            ..self.clone()
        })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = ActorId> + use<> {
        (self.first.0..self.first.0 + self.count).map(ActorId)
    }

    /// Why its handler faulted last, if it did.
    pub fn last_fault(&self) -> Option<String> {
        self.core.host.last_fault(self.first)
    }

    /// Puts a message into its mailbox.
    ///
    /// # Errors
    /// The message was not taken: [`ActorError::Full`], [`ActorError::Terminated`], [`ActorError::ForeignMessage`],
    /// [`ActorError::ShutDown`]; [`ActorError::ArenaFull`] where its vectors find no room.
    pub fn send<M: Message>(&self, message: &M) -> Result<()> {
        self.send_with(message, SendOptions::default())
    }

    /// As [`KernelHandle::send`], with a priority or a deadline of its own.
    ///
    /// # Errors
    /// As [`KernelHandle::send`].
    pub fn send_with<M: Message>(&self, message: &M, options: SendOptions) -> Result<()> {
        self.core.interrupt();
        let packet = self.prepare(message, Kind::Message, options)?;
        self.core
            .engine
            .submit(&packet)
            .map_err(|refusal| self.not_taken(&packet, refusal))
    }

    fn not_taken(&self, packet: &Packet, refusal: Refusal) -> ActorError {
        self.core.host.arena.release(packet);
        self.core.refused(&self.group, self.first, refusal)
    }

    /// As [`KernelHandle::send`]; waits while the mailbox is full, or has no room for its vectors.
    ///
    /// # Errors
    /// As [`KernelHandle::send`], but for [`ActorError::Full`]; [`ActorError::ArenaFull`] where its vectors would not fit into an
    /// empty arena.
    pub async fn send_when_room<M: Message>(&self, message: &M) -> Result<()> {
        let mut wait = Duration::from_micros(20);
        loop {
            match self.send(message) {
                Err(ActorError::Full { .. }) => {}
                Err(ActorError::ArenaFull { asked, bytes, .. }) if asked <= bytes => {}
                other => return other,
            }
            self.core.sleep(wait).await;
            wait = (wait * 2).min(Duration::from_millis(2));
        }
    }

    fn prepare<M: Message>(&self, message: &M, kind: Kind, options: SendOptions) -> Result<Packet> {
        self.core.check_open()?;
        let (type_id, path) = (<M::View as RingMessage>::TYPE_ID, <M::View as RingMessage>::PATH);
        self.group.check_type(self.first, type_id, path)?;
        let mut packet = self.core.packet(&self.group, self.first, message, kind)?;
        if let Some(priority) = options.priority {
            packet.header.priority = priority;
        }
        if let Some(deadline) = options.deadline {
            packet.header.deadline = deadline_micros(deadline);
        }
        if let Some(delivery) = options.delivery {
            packet.header.deliveries = Deliveries::asking(delivery);
        }
        Ok(packet)
    }

    /// Sends a message and waits for the answer, as long as the runtime's builder says (5 seconds unless said otherwise).
    ///
    /// # Errors
    /// As [`KernelHandle::send`]; [`ActorError::Timeout`], [`ActorError::Faulted`], [`ActorError::NoReply`],
    /// [`ActorError::WrongReply`].
    pub async fn ask<Req: Message, Rep: Receive>(&self, request: &Req) -> Result<Rep> {
        self.ask_timeout(request, self.core.settings.ask_timeout).await
    }

    /// As [`KernelHandle::ask`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`KernelHandle::ask`].
    pub async fn ask_timeout<Req: Message, Rep: Receive>(
        &self,
        request: &Req,
        timeout: Duration,
    ) -> Result<Rep> {
        let span = tracing::trace_span!("ask", actor = self.group.member(self.first), request = Req::NAME);
        self.wait_for_answer(request, timeout).instrument(span).await
    }

    async fn wait_for_answer<Req: Message, Rep: Receive>(
        &self,
        request: &Req,
        timeout: Duration,
    ) -> Result<Rep> {
        let pending = self.begin_ask(request)?;
        if pending.waiter.answered.load(Ordering::Acquire)
            && let Some(outcome) = pending.waiter.take()
        {
            return self.answer(outcome);
        }
        let time = &self.core.host.time;
        let deadline = time.now() + timeout;
        self.core.host.timer.look_at_asks(deadline);
        let outcome = std::future::poll_fn(|cx| match pending.waiter.poll(cx.waker(), deadline) {
            Some(outcome) => Poll::Ready(outcome),
            None if time.now() >= deadline => Poll::Ready(Err(self.timed_out(timeout))),
            None => {
                self.core.step_for(cx.waker());
                Poll::Pending
            }
        })
        .await;
        self.answer(outcome)
    }

    /// As [`KernelHandle::ask`] without an executor: the calling thread looks for the answer all the time, and runs the actor
    /// itself where its handler is quick. The shortest way to an answer.
    ///
    /// # Errors
    /// As [`KernelHandle::ask`].
    pub fn ask_blocking<Req: Message, Rep: Receive>(&self, request: &Req) -> Result<Rep> {
        self.ask_blocking_timeout(request, self.core.settings.ask_timeout)
    }

    /// As [`KernelHandle::ask_blocking`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`KernelHandle::ask`].
    pub fn ask_blocking_timeout<Req: Message, Rep: Receive>(
        &self,
        request: &Req,
        timeout: Duration,
    ) -> Result<Rep> {
        let _span =
            tracing::trace_span!("ask", actor = self.group.member(self.first), request = Req::NAME).entered();
        let pending = self.begin_ask(request)?;
        let answered = &pending.waiter.answered;
        let time = &self.core.host.time;
        let mut began = None;
        let mut turn = 0u32;
        // Acquire: pairs with the Release behind the outcome.
        while !answered.load(Ordering::Acquire) {
            turn = turn.wrapping_add(1);
            if self.core.is_simulated() {
                let deadline = *began.get_or_insert_with(|| time.now()) + timeout;
                if !self.core.step_until(deadline) {
                    return Err(self.timed_out(timeout));
                }
                continue;
            }
            if !turn.is_multiple_of(64) {
                std::hint::spin_loop();
                continue;
            }
            self.core.engine.help(self.first, answered);
            if time.since(*began.get_or_insert_with(|| time.now())) >= timeout {
                return Err(self.timed_out(timeout));
            }
            if turn.is_multiple_of(1024) {
                std::thread::yield_now();
            }
        }
        match pending.waiter.take() {
            Some(outcome) => self.answer(outcome),
            None => Err(self.timed_out(timeout)),
        }
    }

    fn begin_ask<Req: Message>(&self, request: &Req) -> Result<Pending<'_>> {
        self.core.interrupt();
        let mut packet = self.prepare(request, Kind::Ask, SendOptions::default())?;
        let (correlation, waiter) = self.core.host.asks.begin(self.first);
        packet.header.correlation = correlation;
        let pending = self.core.host.asks.pending(correlation, waiter);
        match self.core.engine.ask(&packet, &pending.waiter.answered) {
            Ok(()) => Ok(pending),
            Err(refusal) => {
                // It is not under way: nothing will come of it.
                drop(pending);
                self.core.host.asks.forget(self.first, correlation);
                Err(self.not_taken(&packet, refusal))
            }
        }
    }

    fn timed_out(&self, waited: Duration) -> ActorError {
        let actor = self.group.title(self.first);
        let held = self.core.engine.is_held(self.first);
        self.core
            .lost()
            .unwrap_or(ActorError::Timeout { actor, waited, held })
    }

    fn answer<Rep: Receive>(&self, outcome: Result<Received>) -> Result<Rep> {
        outcome?.open(|| self.group.title(self.first))
    }

    /// Waits for the next message of type `M` that it sends to the host without being asked: replies to what was sent, and what
    /// its handler sends there.
    ///
    /// # Errors
    /// [`ActorError::WrongReply`] where the next is of another type (it is gone then: [`KernelHandle::outputs`] has all
    /// types), [`ActorError::Terminated`] where no more will come.
    pub async fn receive<M: Receive>(&self) -> Result<M> {
        let outputs = self.outputs();
        let received = std::future::poll_fn(|cx| outputs.poll(cx)).await;
        received.ok_or_else(|| self.gone())?.get()
    }

    /// The next message of type `M`, if there is one.
    ///
    /// # Errors
    /// As [`KernelHandle::receive`].
    pub fn try_receive<M: Receive>(&self) -> Result<Option<M>> {
        let output = self.core.host.outputs(self.first).poll(None);
        match self.core.received(self.first, output) {
            Some(received) => received.get().map(Some),
            None if self.state() == ActorState::Terminated => Err(self.gone()),
            None => Ok(None),
        }
    }

    /// As [`KernelHandle::receive`] on a thread that sleeps, for at most `timeout`.
    ///
    /// # Errors
    /// As [`KernelHandle::receive`]; [`ActorError::Timeout`].
    pub fn receive_blocking<M: Receive>(&self, timeout: Duration) -> Result<M> {
        let deadline = self.core.host.time.now() + timeout;
        let outputs = self.core.host.outputs(self.first);
        if self.state() == ActorState::Terminated {
            outputs.close();
        }
        while self.core.is_simulated() && outputs.len() == 0 && self.core.step_until(deadline) {}
        let output = match self.core.is_simulated() {
            true => outputs.poll(None),
            false => outputs.wait(Some(deadline)),
        };
        let late = matches!(output, Output::Empty);
        match self.core.received(self.first, output) {
            Some(received) => received.get(),
            None if late => Err(self.timed_out(timeout)),
            None => Err(self.gone()),
        }
    }

    /// All messages that it sends to the host without being asked, as a stream that ends when the actor is terminated.
    pub fn outputs(&self) -> OutputStream {
        OutputStream::new(&self.core, self.first)
    }

    fn gone(&self) -> ActorError {
        self.core.refused(&self.group, self.first, Refusal::Gone)
    }

    /// Subscribes it to all topics that `pattern` stands for: their messages go into its mailbox, first those that were kept.
    /// It ends with the actor, or by `PubSubBroker::unsubscribe`. Where it is [at least once](SubscribeOptions::at_least_once), a message is delivered
    /// until a handler of it has returned, or as often as the launch says.
    ///
    /// # Errors
    /// [`ActorError::Topic`].
    pub fn subscribe(&self, pattern: Topic, options: SubscribeOptions) -> Result<Subscription> {
        self.core.check_open()?;
        self.core.host.pubsub.subscribe_with(self.first, pattern, options)
    }

    /// How long ago the device gave the last sign of life of what hosts these actors, the longest of them: it gives one every few
    /// milliseconds, unless a handler runs. `None` where nothing stays on a device.
    pub fn heartbeat(&self) -> Option<Duration> {
        self.all()
            .filter_map(|actor| self.core.engine.silence(actor))
            .max()
    }

    /// What these actors have done, all together, without stopping them; of a launch that was terminated as a whole, or with the
    /// runtime, what they had done then. A device counts a message behind its answer, so the last ones may be missing for some
    /// microseconds. The actors of a launch of more than 4096 share one histogram of latencies: each of them gives that of all.
    pub fn metrics(&self) -> ActorMetrics {
        self.core.metrics(&self.group, self.first, self.count)
    }

    /// The state, between two messages.
    ///
    /// # Errors
    /// [`ActorError::State`] unless `T` is the handler's; [`ActorError::NoSuchActor`] where the actor is gone.
    pub fn read_state<T: GpuType>(&self) -> Result<T> {
        self.group.check_state_type::<T>()?;
        let read = self.core.engine.read_state(self.first);
        let bytes = read.map_err(|error| match error {
            ActorError::NoSuchActor { .. } => self.gone(),
            other => other,
        })?;
        let values = layout::collect::<T>(1, |out| {
            out.copy_from_slice(&bytes);
            Ok(())
        })?;
        values.first().copied().ok_or_else(|| self.gone())
    }

    /// Replaces the state, between two messages.
    ///
    /// # Errors
    /// As [`KernelHandle::read_state`].
    pub fn write_state<T: GpuType>(&self, state: T) -> Result<()> {
        self.group.check_state_type::<T>()?;
        layout::with_bytes(&[state], |bytes| self.core.engine.write_state(self.first, bytes))
    }
}

impl std::fmt::Debug for KernelHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        write!(
            f,
            "KernelHandle({} x{}, {state})",
            self.group.title(self.first),
            self.count
        )
    }
}
