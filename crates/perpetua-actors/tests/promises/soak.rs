//! Everything at random for a while: what was accepted is handled once or reported.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use std::time::{Duration, Instant};

use perpetua::actors::{
    ActorError, Context, DeadReason, Kind, LaunchOptions, RingMessage, Supervision, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::handlers::{Account, Balance};
use super::{builder, eventually};

/// Is answered; the handler faults where `place` is above 3.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Count {
    place: u32,
    amount: i32,
}

#[ring_kernel]
fn count(_ctx: &mut Context, account: &mut Account, count: Count) -> Balance {
    account.balance += count.amount;
    account.changes += 1;
    account.places[count.place as usize] += 1;
    Balance {
        amount: account.balance,
        changes: account.changes,
    }
}

/// Says that a sender has ended, also when it panics: else the others would wait for it for ever.
struct Ends<'a>(&'a AtomicU64);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// How long an answer, and how long what is to be seen beyond the soak's time, may take on a busy machine with a slow driver. What was lost fails then.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn each_accepted_message_is_handled_once_or_reported() {
    let seconds = std::env::var("PERPETUA_SOAK_SECONDS").map_or(2, |text| text.parse().unwrap());
    let runtime = builder()
        .ask_timeout(PATIENCE)
        .patience(Duration::from_millis(20))
        .dead_letters(1 << 20)
        .build_blocking()
        .unwrap();
    let restart = Supervision::Restart {
        max: u32::MAX,
        // Each fault would double it: soon nobody would wait for so long.
        backoff: Duration::ZERO,
    };
    let options = LaunchOptions::new(count::handler())
        .with_actors(4)
        .with_queue_capacity(4)
        .with_supervision(restart);
    let all = runtime.launch_blocking("soak", options).unwrap();
    let until = Instant::now() + Duration::from_secs(seconds);
    let [accepted, answered, faulted, received, full, sending] = [const { AtomicU64::new(0) }; 6];
    sending.store(2, Relaxed);
    // A slow driver needs longer.
    let faults = || runtime.dead_letters().counts().of(DeadReason::Faulted);
    let enough = || faults() >= 8 && answered.load(Relaxed) > 0 && full.load(Relaxed) > 0;
    std::thread::scope(|scope| {
        for seed in 0..2u32 {
            let (all, accepted, answered, full, sending) = (&all, &accepted, &answered, &full, &sending);
            let (faulted, enough) = (&faulted, &enough);
            scope.spawn(move || {
                let _ends = Ends(sending);
                let mut dice = seed;
                while Instant::now() < until || !enough() {
                    let late = Instant::now() > until + PATIENCE;
                    assert!(!late, "no faults, answers or full mailboxes for too long");
                    dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let kernel = all.actor(dice >> 30).unwrap();
                    let place = if dice >> 12 & 15 == 0 { 9 } else { 1 };
                    let amount = (dice >> 28) as i32;
                    let count = Count { place, amount };
                    let (counter, result) = match dice >> 18 & 7 {
                        0 => (answered, kernel.ask_blocking::<_, Balance>(&count).map(drop)),
                        _ => (accepted, kernel.send(&count)),
                    };
                    match result {
                        Ok(()) => counter.fetch_add(1, Relaxed),
                        Err(ActorError::Full { .. }) => full.fetch_add(1, Relaxed),
                        // It is among the dead letters.
                        Err(ActorError::Faulted { .. }) => faulted.fetch_add(1, Relaxed),
                        Err(other) => panic!("{other}"),
                    };
                }
            });
        }
        scope.spawn(|| {
            for i in (0..4u32).cycle() {
                let kernel = all.actor(i).unwrap();
                // Faults and restarts move it, too.
                let _ = block_on(kernel.deactivate());
                std::thread::sleep(Duration::from_micros(300));
                let _ = block_on(kernel.activate());
                if sending.load(Relaxed) == 0 {
                    break;
                }
            }
        });
        scope.spawn(|| {
            while sending.load(Relaxed) > 0 {
                for i in 0..4 {
                    while all.actor(i).unwrap().try_receive::<Balance>().unwrap().is_some() {
                        received.fetch_add(1, Relaxed);
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
    // Somebody takes the outputs meanwhile.
    eventually("nothing waits", || {
        for i in 0..4 {
            let kernel = all.actor(i).unwrap();
            while kernel.try_receive::<Balance>().unwrap().is_some() {
                received.fetch_add(1, Relaxed);
            }
        }
        let metrics = all.metrics();
        let dead = runtime.dead_letters().counts();
        let ended = metrics.messages_processed + dead.of(DeadReason::Faulted);
        let sent = [&accepted, &answered, &faulted].map(|counter| counter.load(Relaxed));
        ended >= sent.iter().sum()
    });
    let letters = runtime.dead_letters().letters();
    let [mut dead_jobs, mut dead_asks, mut dead_outputs] = [0u64; 3];
    for letter in &letters {
        match (
            letter.packet.header.type_id == Count::TYPE_ID,
            letter.packet.header.kind,
        ) {
            (true, Kind::Ask) => dead_asks += 1,
            (true, _) => dead_jobs += 1,
            (false, _) => dead_outputs += 1,
        }
    }
    let metrics = all.metrics();
    let [accepted, answered, full] = [accepted, answered, full].map(|counter| counter.load(Relaxed));
    let outputs = metrics.messages_sent - answered;
    eventually("all outputs are received or reported", || {
        for i in 0..4 {
            while all.actor(i).unwrap().try_receive::<Balance>().unwrap().is_some() {
                received.fetch_add(1, Relaxed);
            }
        }
        received.load(Relaxed) + dead_outputs == outputs
    });
    println!("accepted {accepted}, answered {answered}, faulted asks {dead_asks}; refused as full {full}");
    println!(
        "handled {}, reported {dead_jobs}; outputs {outputs}",
        metrics.messages_processed
    );
    assert_eq!(accepted + answered, metrics.messages_processed + dead_jobs);
    assert_eq!(faulted.load(Relaxed), dead_asks);
    assert!(
        dead_jobs > 0 && answered > 0 && full > 0,
        "the soak tests nothing"
    );
}
