//! Actors of two devices of one runtime: what they send each other keeps every promise. Where there are two GPUs, `PERPETUA_SECOND_DEVICE`
//! names the other one's number.

use std::time::Duration;

use perpetua::actors::runtime::RuntimeBuilder;
use perpetua::actors::{
    ActorError, Context, DeadReason, KernelHandle, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::handlers::*;
use super::{builder, engines, eventually};

fn two_devices(patience: Duration) -> RuntimeBuilder {
    let second = std::env::var("PERPETUA_SECOND_DEVICE");
    // The host's processor is one device.
    let second = second
        .ok()
        .filter(|_| matches!(engines::name().as_str(), "cuda" | "wgpu"));
    let second: usize = second.map_or(0, |number| number.parse().expect("a device's number"));
    builder().patience(patience).and_device(second)
}

/// The ways from device to device that the engine has: whether it is into the other one's memory.
fn ways() -> &'static [bool] {
    match engines::name().as_str() {
        "resident" | "cuda" => &[true, false],
        _ => &[false],
    }
}

fn patient(peers: bool) -> PerpetuaRuntime {
    let builder = two_devices(Duration::from_secs(300)).peer_memory(peers);
    let runtime = builder.build_blocking().unwrap();
    assert_eq!(runtime.backend().reaches_peers(), peers);
    runtime
}

/// Goes to and fro between two actors.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Ball {
    to: u32,
    back: u32,
    throws: u32,
}

/// Numbers in the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(super) struct Numbers {
    pub(super) to: u32,
    pub(super) first: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(super) struct Numbered {
    pub(super) number: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
pub(super) struct Seen {
    pub(super) last: u32,
    pub(super) count: u32,
    pub(super) misplaced: u32,
}

#[ring_kernel]
fn throw(ctx: &mut Context, caught: &mut u32, ball: Ball) {
    *caught += 1;
    if ball.throws > 0 {
        ctx.send(
            ball.to,
            Ball {
                to: ball.back,
                back: ball.to,
                throws: ball.throws - 1,
            },
        );
    }
}

#[ring_kernel(also(listen))]
pub(super) fn number(ctx: &mut Context, seen: &mut Seen, numbers: Numbers) {
    for i in 0..8 {
        ctx.send(
            numbers.to,
            Numbered {
                number: numbers.first + i,
            },
        );
    }
    seen.count += 1;
}

#[ring_kernel]
fn listen(_ctx: &mut Context, seen: &mut Seen, message: Numbered) {
    if message.number != seen.last + 1 {
        seen.misplaced += 1;
    }
    seen.last = message.number;
    seen.count += 1;
}

pub(crate) fn actors_of_two_devices_reach_each_other() {
    ways().iter().for_each(|peers| reach_each_other(*peers));
}

fn reach_each_other(peers: bool) {
    let runtime = patient(peers);
    let launch = |name: &str, device| {
        let options = LaunchOptions::new(throw::handler()).on_device(device);
        runtime.launch_blocking(name, options).unwrap()
    };
    let [here, there] = [launch("here", 0), launch("there", 1)];
    let ball = Ball {
        to: there.id().0,
        back: here.id().0,
        throws: 99,
    };
    here.send(&ball).unwrap();
    eventually("the last throw", || {
        there.read_state::<u32>().unwrap() == 50 && here.read_state::<u32>().unwrap() == 50
    });

    assert_eq!(runtime.backend().through_host(), if peers { 0 } else { 99 });

    // In the order of sending, all of them, through a box that is often full.
    let launch = |name: &str, device| {
        let options = LaunchOptions::new(number::handler())
            .on_device(device)
            .with_queue_capacity(16);
        runtime.launch_blocking(name, options).unwrap()
    };
    let [counts, listens] = [launch("counts", 1), launch("listens", 0)];
    for first in (1..400).step_by(8) {
        let numbers = Numbers {
            to: listens.id().0,
            first,
        };
        block_on(counts.send_when_room(&numbers)).unwrap();
    }
    block_on(runtime.idle());
    let seen: Seen = listens.read_state().unwrap();
    assert_eq!((seen.last, seen.count, seen.misplaced), (400, 400, 0));
    assert_eq!(counts.metrics().messages_sent, 400);
    assert_eq!(runtime.dead_letters().counts().total(), 0);

    // Many at once, each to one of its own: boxes are full, and the order stays.
    const PAIRS: u32 = 16;
    let crowd = |name: &str, device| {
        let options = LaunchOptions::new(number::handler()).with_actors(PAIRS);
        runtime.launch_blocking(name, options.on_device(device)).unwrap()
    };
    let [many, listeners] = [crowd("many", 1), crowd("listeners", 0)];
    std::thread::scope(|scope| {
        for i in 0..PAIRS {
            let [from, to] = [&many, &listeners].map(|launch| launch.actor(i).unwrap());
            scope.spawn(move || {
                for first in (1..400).step_by(8) {
                    let numbers = Numbers { to: to.id().0, first };
                    block_on(from.send_when_room(&numbers)).unwrap();
                }
            });
        }
    });
    block_on(runtime.idle());
    for i in 0..PAIRS {
        let seen: Seen = listeners.actor(i).unwrap().read_state().unwrap();
        assert_eq!(
            (seen.last, seen.count, seen.misplaced),
            (400, 400, 0),
            "listener {i}"
        );
    }
    assert_eq!(runtime.dead_letters().counts().total(), 0);

    // A device that is not there is told, as is an actor that is gone.
    let options = LaunchOptions::new(throw::handler()).on_device(2);
    let error = runtime.launch_blocking("nowhere", options).unwrap_err();
    assert!(
        matches!(
            error,
            ActorError::NoSuchDevice {
                device: 2,
                devices: 2,
                ..
            }
        ),
        "{error}"
    );
    block_on(there.terminate()).unwrap();
    here.send(&ball).unwrap();
    eventually("the letter", || {
        runtime.dead_letters().counts().of(DeadReason::Unknown) == 1
    });
}

pub(crate) fn a_full_mailbox_on_another_device_holds_its_sender() {
    for peers in ways() {
        full_mailbox(|patience| two_devices(patience).peer_memory(*peers), 1);
    }
}

pub(crate) fn a_full_mailbox_holds_its_sender() {
    full_mailbox(|patience| builder().patience(patience), 0);
}

fn full_mailbox(with_patience: impl Fn(Duration) -> RuntimeBuilder, device: usize) {
    /// Messages of a sender that is to be held: more than a device handles before it hears that it is.
    const MANY: u64 = 400;
    let pair = |patience| {
        let runtime = with_patience(patience).build_blocking().unwrap();
        let options = LaunchOptions::new(number::handler()).with_queue_capacity(4);
        let sink = options.clone().without_auto_activate().on_device(device);
        let sink = runtime.launch_blocking("sink", sink).unwrap();
        let sender = runtime.launch_blocking("sender", options).unwrap();
        let numbers = Numbers {
            to: sink.id().0,
            first: 1,
        };
        (runtime, sink, sender, numbers)
    };
    // It handles nothing until there is room, and nothing is lost.
    let (runtime, sink, sender, numbers) = pair(Duration::from_secs(300));
    std::thread::scope(|scope| {
        let sends = || block_on(sender.send_when_room(&numbers)).unwrap();
        let sends_all = scope.spawn(move || (0..MANY).for_each(|_| sends()));
        eventually("it is held", || sender.metrics().messages_processed > 0);
        let handled = super::room::handled_when_held(&sender);
        assert!(handled < MANY, "{handled}");
        assert!(!sends_all.is_finished());
        assert!(sink.metrics().queue_depth <= 4, "{}", sink.metrics().queue_depth);
        block_on(sink.activate()).unwrap();
    });
    block_on(runtime.idle());
    assert_eq!(sink.read_state::<Seen>().unwrap().count as u64, 8 * MANY);
    assert_eq!(runtime.dead_letters().counts().total(), 0);

    // Or until the patience ends.
    let (runtime, sink, sender, numbers) = pair(Duration::from_millis(200));
    sender.send(&numbers).unwrap();
    eventually("four letters", || {
        runtime.dead_letters().counts().of(DeadReason::Full) == 4
    });
    assert_eq!(sender.metrics().messages_dropped, 4);
    block_on(sink.activate()).unwrap();
    block_on(runtime.idle());
    let seen: Seen = sink.read_state().unwrap();
    assert_eq!((seen.last, seen.count, seen.misplaced), (4, 4, 0));
    assert_eq!(runtime.dead_letters().counts().total(), 4);
}

pub(crate) fn a_checkpoint_holds_two_devices_at_one_moment() {
    ways().iter().for_each(|peers| checkpoint_of_both(*peers));
}

fn checkpoint_of_both(peers: bool) {
    let file = engines::file("perpetua-devices");
    let runtime = patient(peers);
    // A small mailbox: much of what is sent waits with its sender.
    let launch = |name: &str, device| {
        let options = LaunchOptions::new(burst::handler())
            .with_actors(8)
            .with_queue_capacity(4);
        runtime.launch_blocking(name, options.on_device(device)).unwrap()
    };
    // From each device to the other: that which stands still first sends and receives, too.
    let all = [
        launch("sinks", 0),
        launch("senders", 1),
        launch("other sinks", 1),
        launch("other senders", 0),
    ];
    std::thread::scope(|scope| {
        for pair in all.chunks_exact(2) {
            let (first, senders) = (pair[0].id().0, &pair[1]);
            scope.spawn(move || {
                for turn in 0..200 {
                    let burst = Burst {
                        first,
                        accounts: 8,
                        at: turn,
                    };
                    block_on(senders.actor(turn % 8).unwrap().send_when_room(&burst)).unwrap();
                }
            });
        }
        for _ in 0..6 {
            runtime.checkpoint_blocking(&file).unwrap();
        }
    });
    let totals = |runtime: &PerpetuaRuntime, all: &[KernelHandle]| {
        block_on(runtime.idle());
        let state = |of: &KernelHandle, i| of.actor(i).unwrap().read_state::<Account>().unwrap();
        let of_pair = |pair: &[KernelHandle]| {
            let paid: i32 = (0..8).map(|i| state(&pair[0], i).balance).sum();
            let bursts: u32 = (0..8).map(|i| state(&pair[1], i).changes).sum();
            (paid, bursts as i32)
        };
        all.chunks_exact(2).map(of_pair).collect::<Vec<_>>()
    };
    assert_eq!(totals(&runtime, &all), [(1600, 200); 2]);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
    drop((all, runtime));

    // Of each burst all payments are in the checkpoint, or none is; on two devices, and on one.
    for again in [
        patient(peers),
        builder()
            .patience(Duration::from_secs(300))
            .build_blocking()
            .unwrap(),
    ] {
        again.register(burst::handler());
        let restored = again.restore_blocking(&file).unwrap();
        for (paid, bursts) in totals(&again, &restored) {
            assert_eq!(paid, 8 * bursts);
        }
        assert_eq!(again.dead_letters().counts().total(), 0);
    }
    std::fs::remove_file(&file).unwrap();
}

pub(crate) fn a_busy_runtime_leaves_others_their_turn() {
    const BUSY: u32 = 70;
    let way = ways()[0];
    let [busy, other] = [patient(way), patient(way)];
    let launch = |runtime: &PerpetuaRuntime, actors| {
        let options = LaunchOptions::new(throw::handler()).with_actors(actors);
        runtime.launch_blocking("throws", options).unwrap()
    };
    let (throws, catches) = (launch(&busy, BUSY), launch(&other, 1));
    // Each throws to itself, as good as for ever, in a batch's worth of messages.
    for actor in (0..BUSY).map(|i| throws.actor(i).unwrap()) {
        let (to, back) = (actor.id().0, actor.id().0);
        let ball = Ball {
            to,
            back,
            throws: u32::MAX,
        };
        (0..16).for_each(|_| actor.send(&ball).unwrap());
    }
    let handled = || throws.metrics().messages_processed;
    let ball = Ball {
        to: u32::MAX,
        back: u32::MAX,
        throws: 0,
    };
    for turn in 1..=20 {
        let before = handled();
        let outcome = catches.ask_blocking::<_, Ball>(&ball);
        assert!(matches!(outcome, Err(ActorError::NoReply { .. })), "{outcome:?}");
        assert_eq!(catches.read_state::<u32>().unwrap(), turn);
        // Nor does it stop the busy one.
        eventually("the busy one goes on", || handled() > before);
    }
    // What one ends with is nothing to the other.
    other.shutdown_blocking().unwrap();
    let before = handled();
    eventually("the busy one goes on alone", || handled() > before);
    assert_eq!(busy.dead_letters().counts().total(), 0);
    block_on(throws.deactivate()).unwrap();
}

pub(crate) fn vectors_reach_actors_of_another_device() {
    for peers in ways() {
        let runtime = patient(*peers);
        let launch = |device| {
            let options = LaunchOptions::new(super::faults::hand_on::handler()).on_device(device);
            runtime.launch_blocking(&format!("hands on, on {device}"), options)
        };
        let all = [launch(0).unwrap(), launch(1).unwrap()];
        for (from, to) in [(0, 1), (1, 0)] {
            let batch = super::faults::Batch {
                values: vec![0.5; 40],
                to: all[to].id().0,
                fails: 0,
            };
            // Handed on from there, to the host.
            all[from].send(&batch).unwrap();
            let back: super::faults::Batch = block_on(all[to].receive()).unwrap();
            assert_eq!(back.values, [0.5; 40]);
        }
        block_on(runtime.idle());
        let handed = all.map(|one| one.read_state::<u32>().unwrap());
        assert_eq!(handed, [2, 2]);
        assert_eq!(
            (runtime.arena().blocks, runtime.dead_letters().counts().total()),
            (0, 0)
        );
    }
}

pub(crate) fn a_launch_leaves_and_another_comes_in_its_place() {
    for peers in ways() {
        let runtime = patient(*peers);
        let launch = |name: &str, device| {
            let options = LaunchOptions::new(number::handler()).on_device(device);
            runtime.launch_blocking(name, options).unwrap()
        };
        let sender = launch("sends", 0);
        for turn in 0..6 {
            let listens = launch("listens", 1);
            let numbers = Numbers {
                to: listens.id().0,
                first: 1,
            };
            let sends = || sender.send(&numbers).unwrap();
            sends();
            // Some of it may be on its way when the launch leaves.
            if turn % 2 == 0 {
                block_on(runtime.idle());
                assert_eq!(listens.read_state::<Seen>().unwrap().count, 8);
            }
            block_on(listens.terminate()).unwrap();
            sends();
            block_on(runtime.idle());
        }
        // Of each turn eight find nobody, and of those that were cut off what had not been handled.
        let letters = runtime.dead_letters().counts().total();
        assert!((48..=72).contains(&letters), "{letters}");
        assert_eq!(sender.metrics().messages_sent, 96);
    }
}
