//! Everything at random for a while, counted by the host and by the device.

use std::time::{Duration, Instant};

use perpetua::actors::{
    ActorError, ActorId, Context, DeadReason, LaunchOptions, PerpetuaRuntime, RingMessage, ring_kernel,
};
use perpetua::prelude::*;

const ACTORS: u32 = 64;
/// Messages that wait for each.
const CAPACITY: usize = 64;
/// Chains of hops that are under way at the same time, and the hops of each.
const CHAINS: u64 = 48;
const HOPS: u32 = 10_000;
/// The numbers of chains.
const CHAIN: u64 = 1 << 62;

/// A number, to be added to the state; or to be passed on, or told to the host, as well.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Job {
    number: u64,
    task: u32,
    to: u32,
    /// How often it is passed on once more, from actor to actor of those from number `first` on; then the host is told.
    hops: u32,
    first: u32,
}

/// Of jobs handled, passed on and told to the host: how many, and the sum of their scrambled numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Ledger {
    counts: [u64; 3],
    sums: [u64; 3],
}

/// Steele, Lea and Flood's SplitMix64.
#[device]
fn scramble(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[ring_kernel]
fn enter(ctx: &mut Context, ledger: &mut Ledger, job: Job) {
    ledger.counts[0] += 1;
    ledger.sums[0] = ledger.sums[0].wrapping_add(scramble(job.number));
    let mut next = job;
    next.task = 0;
    next.number = job.number | 0x8000_0000_0000_0000;
    if job.hops > 0 {
        next.hops = job.hops - 1;
        next.task = if next.hops > 0 { 1 } else { 2 };
        next.to = job.first + (scramble(job.number ^ job.hops as u64) % 64) as u32;
    }
    if job.task == 1 {
        ledger.counts[1] += 1;
        ledger.sums[1] = ledger.sums[1].wrapping_add(scramble(next.number));
        ctx.send(job.to, next);
    } else if job.task == 2 {
        ledger.counts[2] += 1;
        ledger.sums[2] = ledger.sums[2].wrapping_add(scramble(next.number));
        ctx.send(u32::MAX, next);
    }
}

/// Passes everything on; lives shortly.
#[ring_kernel]
fn guest(ctx: &mut Context, passed: &mut u64, job: Job) {
    *passed += 1;
    let mut next = job;
    next.task = 0;
    ctx.send(job.to, next);
}

/// Everything at random for a while, three seconds or `PERPETUA_SOAK_SECONDS`, or until `PERPETUA_SOAK_MESSAGES` are handled, most of them in long chains from actor to
/// actor; on the CPU's threads where `PERPETUA_ACTORS_ON=cpu`: full mailboxes, a slow consumer, actors that are
/// deactivated and activated, that send to each other; guests that are launched, and terminated with full mailboxes; checkpoints
/// meanwhile. Each accepted message is handled once or reported,
/// counted by the host and by the device.
pub(crate) fn soak() {
    let seconds = std::env::var("PERPETUA_SOAK_SECONDS").ok();
    let seconds: u64 = seconds.map_or(3, |text| text.parse().expect("a number of seconds"));
    let messages = std::env::var("PERPETUA_SOAK_MESSAGES").ok();
    let messages: Option<u64> = messages.map(|text| text.parse().expect("a number of messages"));
    let on_threads = std::env::var("PERPETUA_ACTORS_ON").is_ok_and(|name| name == "cpu");
    let builder = || match on_threads {
        true => PerpetuaRuntime::builder(),
        false => super::builder(),
    };
    // What goes wrong must go wrong in the interpreter, too, which handles few messages.
    let (often, seldom) = if on_threads || super::has_gpu() {
        (4096, 64)
    } else {
        (512, 2)
    };
    let runtime = builder().dead_letters(1 << 20).build_blocking().unwrap();
    let options = LaunchOptions::new(enter::handler())
        .with_actors(ACTORS)
        .with_queue_capacity(CAPACITY);
    let all = runtime.launch_blocking("ledgers", options).unwrap();
    let handles: Vec<_> = (0..ACTORS).map(|i| all.actor(i).unwrap()).collect();
    let (mut accepted, mut told) = ((0u64, 0u64), (0u64, 0u64));
    let (mut full, mut moves, mut checkpoints, mut guests) = (0u64, 0u64, 0u64, 0u64);
    let path = std::env::temp_dir().join(format!("perpetua-soak-{}", std::process::id()));
    let mut dice = 1u64;
    let mut below = |n: u64| {
        dice += 1;
        scramble(dice) % n
    };
    // Says how many chains have ended.
    let receive = |told: &mut (u64, u64)| {
        let mut ended = 0;
        for handle in &handles {
            while let Some(job) = handle.try_receive::<Job>().unwrap() {
                *told = (told.0 + 1, told.1.wrapping_add(scramble(job.number)));
                ended += job.number >> 62 & 1;
            }
        }
        ended
    };
    // How often an actor's patience has ended, and whose has last: all that waits with an actor ends at once.
    let (mut given_up, mut last_sender) = (0u64, None);
    // Messages to actors, and outputs.
    let mut dead = |counts: &mut [(u64, u64); 2]| {
        let letters = runtime.dead_letters();
        let mut ended = 0;
        for letter in letters.letters().iter().filter_map(|l| letters.take(l.number)) {
            let job = Job::from_payload(&letter.packet.payload);
            let is_output = letter.packet.header.destination == ActorId::HOST.0;
            if letter.reason == DeadReason::Full {
                let sender = Some(letter.packet.header.sender);
                given_up += u64::from(last_sender != sender);
                last_sender = sender;
            } else {
                assert!(!is_output, "{letter:?}");
            }
            let count = &mut counts[usize::from(is_output)];
            *count = (count.0 + 1, count.1.wrapping_add(scramble(job.number)));
            ended += job.number >> 62 & 1;
        }
        ended
    };
    let mut reported = [(0, 0); 2];
    let (began, first) = (Instant::now(), all.id().0);
    let (mut number, mut chains, mut looks) = (0, 0, 0u32);
    let mut goes_on = || {
        looks += 1;
        match messages {
            None => began.elapsed() < Duration::from_secs(seconds),
            // Reading the counters of a device takes its time.
            Some(most) => !looks.is_multiple_of(1 << 12) || all.metrics().messages_processed < most,
        }
    };
    while goes_on() {
        if messages.is_some() && chains < CHAINS {
            number += 1;
            let job = Job {
                number: number | CHAIN,
                task: 1,
                to: handles[number as usize % handles.len()].id().0,
                hops: HOPS,
                first,
            };
            if handles[chains as usize].send(&job).is_ok() {
                accepted = (accepted.0 + 1, accepted.1.wrapping_add(scramble(job.number)));
                chains += 1;
            }
        }
        let at = below(u64::from(ACTORS)) as usize;
        match below(often) {
            0 => {
                let _ = perpetua::device::future::block_on(handles[at].deactivate());
                moves += 1;
                if messages.is_some() {
                    // Else each chain would soon wait for somebody.
                    let _ = perpetua::device::future::block_on(handles[at].activate());
                }
            }
            1..8 => {
                let _ = perpetua::device::future::block_on(handles[at].activate());
                moves += 1;
            }
            8 => chains -= receive(&mut told) + dead(&mut reported),
            9 if below(seldom) == 0 => {
                runtime.checkpoint_blocking(&path).unwrap();
                checkpoints += 1;
            }
            // A home each, and there are not many.
            10 if guests < 40 && below(2 * seldom) == 0 => {
                eprintln!("guest {guests} comes, {} sent", number);
                let options = LaunchOptions::new(guest::handler()).with_queue_capacity(64);
                let visitor = runtime
                    .launch_blocking(&format!("guest {guests}"), options)
                    .unwrap();
                for _ in 0..200 {
                    number += 1;
                    let job = Job {
                        number,
                        task: 0,
                        to: handles[at].id().0,
                        hops: 0,
                        first,
                    };
                    match visitor.send(&job) {
                        Ok(()) => accepted = (accepted.0 + 1, accepted.1.wrapping_add(scramble(number))),
                        Err(ActorError::Full { .. }) => full += 1,
                        Err(other) => panic!("{other}"),
                    }
                }
                eprintln!("guest {guests} goes");
                perpetua::device::future::block_on(visitor.terminate()).unwrap();
                guests += 1;
            }
            // Where mailboxes were always full, chains would wait for each other.
            10.. if messages.is_some() && below(16) > 0 => {
                chains -= receive(&mut told) + dead(&mut reported);
            }
            _ => {
                number += 1;
                let (task, to) = (below(3) as u32, handles[below(u64::from(ACTORS)) as usize].id().0);
                let job = Job {
                    number,
                    task,
                    to,
                    hops: 0,
                    first,
                };
                match handles[at].send(&job) {
                    Ok(()) => accepted = (accepted.0 + 1, accepted.1.wrapping_add(scramble(number))),
                    Err(ActorError::Full { .. }) => full += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
    for handle in &handles {
        let _ = perpetua::device::future::block_on(handle.activate());
    }
    eprintln!("all is sent");
    // All is handled when the device's counts stand still and account for everything.
    let sums = || {
        let mut total = Ledger::default();
        for handle in &handles {
            let ledger: Ledger = handle.read_state().unwrap();
            for i in 0..3 {
                total.counts[i] += ledger.counts[i];
                total.sums[i] = total.sums[i].wrapping_add(ledger.sums[i]);
            }
        }
        total
    };
    let (mut since, mut last) = (Instant::now(), 0);
    let total = loop {
        let _ended = receive(&mut told) + dead(&mut reported);
        let total = sums();
        let ended = total.counts[0] + reported[0].0;
        let done = ended == accepted.0 + total.counts[1] && told.0 + reported[1].0 == total.counts[2];
        if total.counts[0] != last {
            (since, last) = (Instant::now(), total.counts[0]);
        }
        if done || since.elapsed() > Duration::from_secs(20) {
            break total;
        }
    };
    println!(
        "{:.0?}, {ACTORS} actors, {moves} moves, {guests} guests, {checkpoints} checkpoints, {full} times full",
        began.elapsed(),
    );
    println!("accepted from the host          {accepted:?}");
    println!(
        "handled, as the device counted  {} ({:016x})",
        total.counts[0], total.sums[0]
    );
    println!(
        "passed on there                 {} ({:016x})",
        total.counts[1], total.sums[1]
    );
    println!(
        "told to the host there          {} ({:016x})",
        total.counts[2], total.sums[2]
    );
    println!("received by the host            {told:?}");
    println!("reported as dead letters        {reported:?}");
    assert_eq!(
        accepted.0 + total.counts[1],
        total.counts[0] + reported[0].0,
        "messages"
    );
    assert_eq!(
        accepted.1.wrapping_add(total.sums[1]),
        total.sums[0].wrapping_add(reported[0].1),
        "messages' numbers"
    );
    assert_eq!(
        (total.counts[2], total.sums[2]),
        (told.0 + reported[1].0, told.1.wrapping_add(reported[1].1)),
        "outputs"
    );
    // A held actor handles only what was on its way to it by then, at most what its mailbox takes: the interpreter brings it two to five outputs, thirteen
    // on a busy machine. (That it is held is tried by the promises.)
    assert!(
        reported[1].0 <= CAPACITY as u64 * given_up,
        "{} outputs are dead letters, {given_up} times patience ended",
        reported[1].0
    );
    for (count, what) in [
        (moves, "moves"),
        (full, "full mailboxes"),
        (told.0, "outputs"),
        (total.counts[1], "packets between actors"),
    ] {
        // Few are sent beside chains: they may all find room.
        let may_be_none = messages.is_some() && what == "full mailboxes";
        assert!(count > 0 || may_be_none, "no {what}: the soak tests nothing");
    }
    eprintln!("all is counted");
    // A checkpoint comes back as it was, in another runtime, and on threads.
    runtime.checkpoint_blocking(&path).unwrap();
    let before: Vec<Ledger> = handles.iter().map(|h| h.read_state().unwrap()).collect();
    runtime.shutdown_blocking().unwrap();
    for builder in [builder(), PerpetuaRuntime::builder()] {
        let other = builder.build_blocking().unwrap();
        other.register(enter::handler());
        other.register(guest::handler());
        let restored = other.restore_blocking(&path).unwrap();
        let all = restored.iter().find(|all| all.name() == "ledgers").unwrap();
        let after: Vec<Ledger> = (0..ACTORS)
            .map(|i| all.actor(i).unwrap().read_state().unwrap())
            .collect();
        assert_eq!(before, after, "restored, {:?}", other.backend());
        other.shutdown_blocking().unwrap();
    }
    std::fs::remove_file(&path).unwrap();
}
