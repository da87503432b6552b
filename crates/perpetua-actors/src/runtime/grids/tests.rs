//! What a checkpoint holds of actors in resident kernels, in the interpreter, while others want to move packets.

use std::collections::BTreeMap;
use std::time::Duration;

use perpetua_device::gate::Parkable;

use super::*;
use crate::dead_letters::DeadReason;
use crate::echo::{Echo, echo};
use crate::runtime::RuntimeBuilder;
use crate::runtime::options::LaunchOptions;
use crate::runtime::outputs::Output;

/// An engine with so many actors in one launch.
fn engine(actors: u32, capacity: usize) -> (Arc<Host>, Grids, Arc<Group>) {
    let settings = RuntimeBuilder::default().patience(Duration::ZERO).settings;
    let host = Arc::new(Host::new(&settings));
    let engine = start(&host, &settings).unwrap();
    let options = LaunchOptions::default()
        .with_actors(actors)
        .with_queue_capacity(capacity);
    let mut group = options.group("all", echo::handler()).unwrap();
    group.first = ActorId(0);
    let group = Arc::new(group);
    engine.launch(&group).unwrap();
    (host, engine, group)
}

/// An actor as a checkpoint holds it.
fn image_of(engine: &Grids, actor: ActorId) -> ActorImage {
    let mut frozen = engine.freeze().unwrap();
    frozen.look().unwrap();
    frozen.image(actor).unwrap()
}

fn image(group: &Group, unsent: Vec<Packet>) -> ActorImage {
    ActorImage {
        life: ActorState::Active,
        state: group.initial.clone(),
        mailbox: Vec::new(),
        unsent,
        processed: 0,
        errors: 0,
    }
}

fn packet(from: ActorId, to: ActorId) -> Packet {
    let mut packet = Packet::of(&Echo::default());
    (packet.header.sender, packet.header.destination) = (from, to.0);
    packet
}

fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "not within a minute: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn nothing_moves_while_all_stand_still() {
    let (host, engine, group) = engine(2, 2);
    let [sender, other] = [ActorId(0), ActorId(1)];
    // One that has sent three to the host, which has room for two.
    let out = packet(sender, ActorId::HOST);
    (0..2).for_each(|_| assert!(host.outputs(sender).push(&out, 2)));
    Engine::restore(
        &engine,
        &group,
        &BTreeMap::from([(sender, image(&group, vec![out]))]),
    )
    .unwrap();
    engine.revive(sender, ActorState::Active);
    std::thread::scope(|scope| {
        let mut frozen = engine.freeze().unwrap();
        frozen.look().unwrap();
        assert_eq!(frozen.image(sender).unwrap().unsent, [out]);
        // There is room from now on, and its patience is over: but the checkpoint has what is unsent.
        for _ in 0..2 {
            assert!(matches!(host.outputs(sender).poll(None), Output::Packet(..)));
        }
        engine.resume(sender);
        engine.give_up(sender);
        assert_eq!(host.outputs(sender).len(), 0);
        assert_eq!(host.dead.counts().total(), 0);
        // What waits for an actor's activation would go into a ring that was read.
        let activates = scope.spawn(|| engine.transition(other, ActorState::Active));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(engine.life(other), Some(ActorState::Launched));
        drop(frozen);
        activates.join().unwrap().unwrap();
    });
    engine.resume(sender);
    assert_eq!(host.outputs(sender).len(), 1);
    assert_eq!(engine.life(other), Some(ActorState::Active));
    engine.stop();
}

#[test]
fn what_goes_into_a_ring_meanwhile_is_in_the_checkpoint() {
    let (_host, engine, group) = engine(1, 1 << 24);
    let actor = group.first;
    let deployed = engine.shared.find(actor).unwrap();
    engine.revive(actor, ActorState::Active);
    let mut sent = 0;
    // More than the ring takes; the home may be quick.
    let queue = loop {
        for _ in 0..1000 {
            engine.submit(&packet(ActorId::HOST, actor)).unwrap();
            sent += 1;
        }
        let queue = lock(&deployed.homes[0].queue);
        if !queue.waiting.is_empty() {
            break queue;
        }
    };
    std::thread::scope(|scope| {
        let image = scope.spawn(|| image_of(&engine, actor));
        // The home empties its ring and is parked. Then the pump, which fills the ring, and the checkpoint wait for the queue.
        eventually("it is parked", || deployed.grid.waiting(0) == 0);
        std::thread::sleep(Duration::from_millis(200));
        drop(queue);
        let image = image.join().unwrap();
        assert_eq!(image.processed + image.mailbox.len() as u64, sent);
    });
    engine.stop();
}

#[test]
fn who_leaves_the_device_counts_no_packet_twice() {
    let (_host, engine, group) = engine(1, 1 << 24);
    let actor = group.first;
    let deployed = engine.shared.find(actor).unwrap();
    engine.revive(actor, ActorState::Active);
    let gate = engine.shared.commons.device().context().gate().unwrap();
    let (ends, mut wrong) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        // Behind orders to leave, too.
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                if deployed.on_the_way(actor) < 64 {
                    engine.submit(&packet(ActorId::HOST, actor)).unwrap();
                }
            }
        });
        for _ in 0..60 {
            let section = gate.section().unwrap();
            let mut queue = lock(&deployed.homes[0].queue);
            deployed.settle(0, &mut queue);
            let counted = queue.inside.len() as u32;
            wrong += u32::from(counted != deployed.grid.waiting(0));
            drop(queue);
            section.close().unwrap();
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert_eq!(wrong, 0);
    engine.stop();
}

#[test]
fn what_comes_back_from_a_full_mailbox_waits_with_its_sender() {
    let (host, engine, _group) = engine(2, 2);
    let [sender, other] = [ActorId(0), ActorId(1)];
    let deployed = engine.shared.find(other).unwrap();
    let [from, to] = [&deployed.cells[0], &deployed.cells[1]];
    for _ in 0..4 {
        engine.shared.bring_back(&deployed, to, &packet(sender, other));
    }
    assert!(from.is_stalled());
    assert_eq!(lock(&from.unsent).to_vec().len(), 2);
    assert_eq!(to.metrics(Default::default()).queue_depth, 2);
    // One that is gone has nobody who would send it again.
    drop(engine.remove(sender));
    engine.shared.bring_back(&deployed, to, &packet(sender, other));
    assert_eq!(host.dead.counts().of(DeadReason::Full), 1);
    engine.stop();
}

fn sent_at(sent: u64, from: ActorId, to: ActorId) -> Packet {
    let mut packet = packet(from, to);
    packet.header.sent = sent;
    packet
}

/// When those that wait in an actor's mailbox were sent, and those that wait with it.
fn waiting(engine: &Grids, actor: ActorId) -> [Vec<u64>; 2] {
    let image = image_of(engine, actor);
    [image.mailbox, image.unsent].map(|packets| packets.iter().map(|packet| packet.header.sent).collect())
}

#[test]
fn what_comes_back_finds_its_room_while_its_sender_waits_for_the_host() {
    let (host, engine, _group) = engine(2, 4);
    let [sender, other] = [ActorId(0), ActorId(1)];
    let deployed = engine.shared.find(other).unwrap();
    let [from, to] = [&deployed.cells[0], &deployed.cells[1]];
    let out = sent_at(2, sender, ActorId::HOST);
    (0..4).for_each(|_| assert!(host.outputs(sender).push(&out, 4)));
    engine.shared.out(&deployed, &out);
    assert!(from.is_stalled());
    // Its queue at the host is full, the mailbox is not.
    engine
        .shared
        .bring_back(&deployed, to, &sent_at(1, sender, other));
    assert_eq!(waiting(&engine, other)[0], [1]);
    // But one that it has sent before waits with it.
    engine.shared.out(&deployed, &sent_at(3, sender, other));
    for sent in [5, 4] {
        engine
            .shared
            .bring_back(&deployed, to, &sent_at(sent, sender, other));
    }
    assert_eq!(waiting(&engine, other)[0], [1]);
    assert_eq!(waiting(&engine, sender)[1], [2, 3, 4, 5]);
    assert!(matches!(host.outputs(sender).poll(None), Output::Packet(..)));
    engine.resume(sender);
    assert_eq!(waiting(&engine, other)[0], [1, 3, 4, 5]);
    assert!(!from.is_stalled());
    engine.give_up(sender);
    assert_eq!(host.dead.counts().total(), 0);
    engine.stop();
}

#[test]
fn what_comes_back_to_a_full_mailbox_keeps_its_order() {
    let (_host, engine, _group) = engine(2, 2);
    let [sender, other] = [ActorId(0), ActorId(1)];
    let deployed = engine.shared.find(other).unwrap();
    // As from several homes, whose rings are emptied in any order.
    for sent in [4, 5, 3, 1, 2] {
        engine
            .shared
            .bring_back(&deployed, &deployed.cells[1], &sent_at(sent, sender, other));
    }
    assert_eq!(waiting(&engine, other)[0], [1, 2]);
    assert_eq!(waiting(&engine, sender)[1], [3, 4, 5]);
    engine.stop();
}

#[test]
fn what_a_box_has_no_room_for_waits_behind_what_is_in_it() {
    let (host, engine, _group) = engine(2, 4);
    let [sender, other] = [ActorId(0), ActorId(1)];
    let deployed = engine.shared.find(other).unwrap();
    let from = &deployed.cells[0];
    // As if the box had ever got five more than it has handled.
    let (boxed, handled) = deployed.grid.boxed(deployed.grid.home_of(other.0)).unwrap();
    assert_eq!(boxed, handled);
    lock(&from.behind).boxed.insert(other, handled.wrapping_add(5));
    for sent in [1, 2] {
        engine
            .shared
            .overflow(&deployed, from, &sent_at(sent, sender, other));
    }
    assert_eq!(
        (waiting(&engine, other), waiting(&engine, sender)),
        ([vec![], vec![]], [vec![], vec![1, 2]])
    );
    engine.give_up(sender);
    assert_eq!(host.dead.counts().of(DeadReason::Full), 2);
    assert!(!from.is_stalled());
    // What is sent from then on finds the box as it is.
    engine
        .shared
        .overflow(&deployed, from, &sent_at(3, sender, other));
    assert_eq!(
        (waiting(&engine, other), waiting(&engine, sender)),
        ([vec![3], vec![]], [vec![], vec![]])
    );
    engine.stop();
}

/// Counts how often a device's resident kernels are parked.
#[derive(Default)]
struct Parks(AtomicU32);

impl Parkable for Parks {
    fn park(&self) -> perpetua_device::Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn unpark(&self) -> perpetua_device::Result<()> {
        Ok(())
    }
}

#[test]
fn a_thousand_actors_are_restored_with_one_park() {
    let (_host, engine, group) = engine(1000, 8);
    let parks = Arc::new(Parks::default());
    let counts: Arc<dyn Parkable> = parks.clone();
    let gate = engine.shared.commons.device().context().gate().unwrap();
    gate.admit(&counts).unwrap();
    let images = group.actors().map(|actor| (actor, image(&group, Vec::new())));
    Engine::restore(&engine, &group, &images.collect()).unwrap();
    group
        .actors()
        .for_each(|actor| engine.revive(actor, ActorState::Active));
    assert_eq!(parks.0.load(Ordering::Relaxed), 1);
    engine.stop();
}

#[test]
fn launches_beyond_a_devices_room_are_refused_by_name_and_find_what_others_leave() {
    let (host, engine, first) = engine(1, 2);
    let launch = |number| {
        let mut group = LaunchOptions::default().group("one", echo::handler()).unwrap();
        group.first = ActorId(number);
        let group = Arc::new(group);
        engine.launch(&group).map(|()| group)
    };
    // A device keeps 24 launches.
    let others: Vec<Arc<Group>> = (1..24).map(|number| launch(number).unwrap()).collect();
    let error = launch(24).err().unwrap();
    assert!(matches!(error, ActorError::NoRoom { grids: 0, .. }), "{error}");
    engine.transition(first.first, ActorState::Terminated).unwrap();
    assert!(engine.remove(first.first).is_empty());
    launch(24).unwrap();
    assert_eq!((others.len(), host.dead.counts().total()), (23, 0));
}
