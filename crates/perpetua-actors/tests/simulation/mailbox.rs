//! The life of one mailbox as a state machine: checked exhaustively for a few messages, and the measure of what simulations have done.

use std::collections::{HashSet, VecDeque};

use perpetua::actors::runtime::{TraceEvent, Traced};
use perpetua::actors::{ActorState, DeadReason};

/// A message: its name, and its priority.
type Message = (u64, u8);

/// A mailbox, its actor, and the messages that may be sent to it.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    pub(crate) capacity: usize,
    messages: Vec<Message>,
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    life: ActorState,
    removed: bool,
    waiting: Vec<Message>,
    running: Option<Message>,
    /// Faulted on, and not yet a dead letter.
    undone: Option<Message>,
    /// What waited when the actor was removed.
    left: Vec<Message>,
    /// In the order in which it took them.
    taken: Vec<Message>,
    /// In the order in which their handlers began.
    handled: Vec<Message>,
    dead: Vec<Message>,
}

impl Mailbox {
    /// For any messages.
    pub(crate) fn of(capacity: usize) -> Mailbox {
        Mailbox {
            capacity,
            messages: Vec::new(),
        }
    }

    pub(crate) fn begin(&self) -> State {
        State {
            life: ActorState::Launched,
            removed: false,
            waiting: Vec::new(),
            running: None,
            undone: None,
            left: Vec::new(),
            taken: Vec::new(),
            handled: Vec::new(),
            dead: Vec::new(),
        }
    }

    /// What becomes of it; `None` where this cannot happen.
    pub(crate) fn follow(&self, state: &State, what: Traced) -> Option<State> {
        let mut next = state.clone();
        let named = |message: u64, list: &[Message]| list.iter().position(|(name, _)| *name == message);
        let is_in = |one: Option<Message>, message: u64| one.is_some_and(|(name, _)| name == message);
        match what {
            Traced::Taken { message, priority } => {
                let is_open = !state.removed && state.waiting.len() < self.capacity;
                let is_new = named(message, &state.taken).is_none();
                (is_open && is_new).then(|| next.take((message, priority)))
            }
            // A restored mailbox may hold more than others take in, before its actor lives.
            Traced::Restored { message, priority } => {
                (state.life == ActorState::Launched).then(|| next.take((message, priority)))
            }
            Traced::Full { .. } => (state.waiting.len() >= self.capacity).then_some(()),
            Traced::Begun { message } => {
                let may =
                    state.life == ActorState::Active && state.running.is_none() && state.undone.is_none();
                let is_first = is_in(state.waiting.first().copied(), message);
                (may && is_first).then(|| next.running = Some(next.waiting.remove(0)))
            }
            Traced::Handled { message } => {
                is_in(state.running, message).then(|| next.handled.extend(next.running.take()))
            }
            Traced::Faulted { message } => is_in(state.running, message).then(|| {
                next.undone = next.running.take();
                if next.life != ActorState::Terminated {
                    next.life = ActorState::Faulted;
                }
            }),
            Traced::Dead { message, reason } => match reason {
                DeadReason::Faulted => {
                    is_in(state.undone, message).then(|| next.dead.extend(next.undone.take()))
                }
                DeadReason::Foreign => {
                    is_in(state.running, message).then(|| next.dead.extend(next.running.take()))
                }
                DeadReason::Expired => {
                    let is_first =
                        state.life == ActorState::Active && is_in(state.waiting.first().copied(), message);
                    is_first.then(|| next.dead.push(next.waiting.remove(0)))
                }
                DeadReason::Terminated | DeadReason::ShutDown => {
                    match named(message, &state.left) {
                        Some(at) => {
                            next.dead.push(next.left.remove(at));
                            Some(())
                        }
                        // Its sender is gone, and had found no room for it.
                        None => named(message, &state.taken).is_none().then_some(()),
                    }
                }
                // It never came in.
                _ => named(message, &state.taken).is_none().then_some(()),
            },
            Traced::Became(to) => {
                let may = state.life == to || state.life.may_become(to);
                (may && !state.removed).then(|| next.life = to)
            }
            Traced::Revived(to) => (state.life == ActorState::Launched).then(|| next.life = to),
            Traced::Removed => {
                let may = state.life == ActorState::Terminated && state.running.is_none() && !state.removed;
                may.then(|| {
                    next.removed = true;
                    next.left = std::mem::take(&mut next.waiting);
                })
            }
            other => panic!("the model does not know {other:?}"),
        }
        .map(|()| next)
    }

    /// An error where a trace tells of something that cannot happen.
    pub(crate) fn check(&self, trace: &[TraceEvent], actor: u32) -> Result<(), String> {
        let mut state = self.begin();
        let own = trace.iter().filter(|event| event.actor.0 == actor);
        for event in own {
            state = self
                .follow(&state, event.what)
                .ok_or_else(|| format!("cannot be: {event}\nafter {state:#?}"))?;
            check_state(&state).map_err(|why| format!("{why} after {event}: {state:#?}"))?;
        }
        Ok(())
    }
}

impl State {
    // Behind all of the same or higher priority.
    fn take(&mut self, message: Message) {
        let at = self.waiting.iter().position(|other| other.1 < message.1);
        self.waiting.insert(at.unwrap_or(self.waiting.len()), message);
        self.taken.push(message);
    }
}

/// What holds at any time.
fn check_state(state: &State) -> Result<(), &'static str> {
    let places = state
        .waiting
        .iter()
        .chain(&state.running)
        .chain(&state.undone)
        .chain(&state.left)
        .chain(&state.handled)
        .chain(&state.dead);
    let mut places: Vec<&Message> = places.collect();
    places.sort_unstable();
    let mut taken: Vec<&Message> = state.taken.iter().collect();
    taken.sort_unstable();
    if places != taken {
        return Err("a message is nowhere, or twice");
    }
    // Of one priority, what was taken first is handled first.
    let order = |message: &Message| state.taken.iter().position(|other| other == message);
    let disorder = state.handled.iter().enumerate().any(|(at, first)| {
        let mut later = state.handled[at + 1..].iter();
        later.any(|other| other.1 == first.1 && order(other) < order(first))
    });
    match disorder {
        true => Err("messages of one priority are handled in another order"),
        false => Ok(()),
    }
}

impl Mailbox {
    /// All that can happen in this state, and what becomes of it.
    fn all_next(&self, state: &State) -> Vec<State> {
        let mut events = vec![Traced::Removed];
        for (message, priority) in self.messages.iter().copied() {
            events.extend([
                Traced::Taken { message, priority },
                Traced::Full { message },
                Traced::Begun { message },
                Traced::Handled { message },
                Traced::Faulted { message },
            ]);
            let reasons = [
                DeadReason::Faulted,
                DeadReason::Foreign,
                DeadReason::Expired,
                DeadReason::Terminated,
            ];
            events.extend(reasons.map(|reason| Traced::Dead { message, reason }));
        }
        use ActorState::*;
        events.extend([Active, Deactivated, Faulted, Terminated].map(Traced::Became));
        events
            .into_iter()
            .filter_map(|what| self.follow(state, what))
            .collect()
    }
}

/// Something that can come to be, and whether a state is that.
type Sight = (&'static str, fn(&Mailbox, &State) -> bool);

const SIGHTS: [Sight; 5] = [
    ("all are handled", |model, state| {
        state.handled.len() == model.messages.len()
    }),
    ("all die", |model, state| state.dead.len() == model.messages.len()),
    ("it goes on behind a fault", |_, state| {
        !state.dead.is_empty() && !state.handled.is_empty() && state.life == ActorState::Active
    }),
    (
        "a higher priority overtakes",
        |_, state| matches!(state.handled[..], [first, second] if first.1 > second.1 && first > second),
    ),
    ("some wait where the actor is gone", |_, state| {
        state.left.len() == 2
    }),
];

/// Breadth first through all states that there are.
#[test]
fn a_mailbox_loses_nothing_whatever_happens() {
    let model = Mailbox {
        capacity: 2,
        messages: vec![(0, 128), (1, 128), (2, 192), (3, 128)],
    };
    let mut seen = HashSet::from([model.begin()]);
    let mut next = VecDeque::from([model.begin()]);
    let mut sights = SIGHTS.to_vec();
    while let Some(state) = next.pop_front() {
        check_state(&state).unwrap_or_else(|why| panic!("{why}: {state:#?}"));
        assert!(state.waiting.len() <= model.capacity, "{state:#?}");
        let runs = state.running.is_some() || !state.waiting.is_empty();
        assert!(!(state.removed && runs), "it is gone, and runs: {state:#?}");
        assert!(state.undone.is_none() || state.running.is_none(), "{state:#?}");
        sights.retain(|(_, is_that)| !is_that(&model, &state));
        let new = model.all_next(&state);
        // Where nothing more can happen, all are accounted for.
        let is_end = new.iter().all(|other| *other == state);
        assert!(
            !is_end || state.taken.len() == state.handled.len() + state.dead.len(),
            "{state:#?}"
        );
        next.extend(new.into_iter().filter(|state| seen.insert(state.clone())));
    }
    println!("{} states", seen.len());
    let missed: Vec<&str> = sights.iter().map(|(what, _)| *what).collect();
    assert!(missed.is_empty(), "never seen: {missed:?}");
    assert!(seen.len() > 10_000);
}

#[test]
fn a_model_refuses_what_cannot_be() {
    let model = Mailbox::of(1);
    let run = |events: &[Traced]| {
        events
            .iter()
            .try_fold(model.begin(), |state, what| model.follow(&state, *what))
    };
    let taken = |message| Traced::Taken {
        message,
        priority: 128,
    };
    let (begun, handled) = (Traced::Begun { message: 1 }, Traced::Handled { message: 1 });
    let active = Traced::Became(ActorState::Active);
    assert!(run(&[active, taken(1), begun, handled]).is_some());
    assert!(run(&[taken(1), begun]).is_none(), "it is not active");
    assert!(run(&[active, taken(1), taken(2)]).is_none(), "it is full");
    assert!(
        run(&[active, taken(1), begun, handled, handled]).is_none(),
        "twice"
    );
    let dead = Traced::Dead {
        message: 1,
        reason: DeadReason::Faulted,
    };
    assert!(
        run(&[active, taken(1), begun, handled, dead]).is_none(),
        "handled and dead"
    );
}
