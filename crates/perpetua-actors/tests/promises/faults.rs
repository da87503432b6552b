//! A fault is a transaction: what the handler did to its state and what it sent take effect together, when it returns, or not at all.

use std::time::Duration;

use perpetua::actors::pubsub::SubscribeOptions;
use perpetua::actors::{
    ActorError, ActorState, Context, DeadReason, KernelHandle, LaunchOptions, OnFault, PerpetuaRuntime,
    RingMessage, Supervision, Topic, ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::handlers::*;
use super::{eventually, runtime};

const FIRST: Account = Account {
    balance: 100,
    changes: 0,
    places: [0; 4],
};

/// An account that pays, one that is paid, one that listens, and what to pay.
struct Bank {
    runtime: PerpetuaRuntime,
    payer: KernelHandle,
    paid: KernelHandle,
    listener: KernelHandle,
    pay: Pay,
}

fn bank(options: LaunchOptions) -> Bank {
    let runtime = runtime();
    let topic = runtime.pubsub().number(&Topic::new("paid")).unwrap();
    let launch = |name: &str, options: LaunchOptions| {
        let options = options.with_handler(pay::handler()).with_state(FIRST);
        runtime.launch_blocking(name, options).unwrap()
    };
    let payer = launch("payer", options);
    let paid = launch("paid", LaunchOptions::default());
    let listener = launch("listener", LaunchOptions::default());
    listener
        .subscribe(Topic::new("paid"), SubscribeOptions::default())
        .unwrap();
    let pay = Pay {
        to: paid.id().0,
        topic,
        amount: 7,
        place: 1,
    };
    Bank {
        runtime,
        payer,
        paid,
        listener,
        pay,
    }
}

impl Bank {
    fn bad(&self) -> Pay {
        Pay { place: 4, ..self.pay }
    }

    fn state(&self, of: &KernelHandle) -> Account {
        block_on(self.runtime.idle());
        of.read_state().unwrap()
    }

    fn faulted(&self) -> u64 {
        self.runtime.dead_letters().counts().of(DeadReason::Faulted)
    }
}

pub(crate) fn a_fault_is_a_transaction() {
    let bank = bank(LaunchOptions::default());
    let outcome = bank.payer.ask_blocking::<_, Balance>(&bank.bad());
    assert!(matches!(outcome, Err(ActorError::Faulted { .. })), "{outcome:?}");
    assert_eq!(bank.payer.state(), ActorState::Faulted);

    // Nobody got anything, and nothing has changed.
    assert_eq!(bank.state(&bank.payer), FIRST);
    assert_eq!(bank.state(&bank.paid), FIRST);
    assert_eq!(bank.state(&bank.listener), FIRST);
    assert_eq!(bank.payer.try_receive::<Deposit>().unwrap(), None);
    let letters = bank.runtime.dead_letters().letters();
    assert_eq!(letters.len(), 1);
    let letter = &letters[0];
    assert_eq!(letter.reason, DeadReason::Faulted);
    assert_eq!(letter.packet.header.type_id, Pay::TYPE_ID);
    assert_eq!(Pay::from_payload(&letter.packet.payload), bank.bad());

    // Sent again, without what made it fault, it pays once.
    block_on(bank.payer.activate()).unwrap();
    let balance: Balance = bank.payer.ask_blocking(&bank.pay).unwrap();
    assert_eq!((balance.amount, balance.changes), (93, 1));
    assert_eq!(bank.state(&bank.paid).balance, 107);
    assert_eq!(bank.state(&bank.listener).balance, 107);
    let told: Deposit = block_on(bank.payer.receive()).unwrap();
    assert_eq!(told.amount, 7);
    assert_eq!(bank.payer.try_receive::<Deposit>().unwrap(), None);
    assert_eq!(bank.faulted(), 1);
}

pub(crate) fn what_came_before_a_fault_stands() {
    let bank = bank(LaunchOptions::default().without_auto_activate());
    // They are there at once, so that engines that handle several in a row do.
    for pay in [bank.pay, bank.pay, bank.bad(), bank.pay] {
        bank.payer.send(&pay).unwrap();
    }
    block_on(bank.payer.activate()).unwrap();
    eventually("the fault", || bank.faulted() == 1);
    eventually("both payments", || {
        bank.paid.read_state::<Account>().unwrap().balance == 114
    });
    let half = bank.state(&bank.payer);
    assert_eq!((half.balance, half.changes, half.places), (86, 2, [0, 2, 0, 0]));

    // The last one waits.
    block_on(bank.payer.activate()).unwrap();
    eventually("the last payment", || {
        bank.paid.read_state::<Account>().unwrap().balance == 121
    });
    assert_eq!(bank.state(&bank.payer).balance, 79);
    assert_eq!(bank.faulted(), 1);
}

pub(crate) fn a_restart_goes_on_with_what_the_fault_has_left() {
    let restart = Supervision::Restart {
        max: 1,
        backoff: Duration::from_millis(1),
    };
    for (on_fault, balance) in [
        (OnFault::Transactional, 93),
        (OnFault::KeepState, 86),
        (OnFault::Restart, 100),
    ] {
        let options = LaunchOptions::default()
            .with_on_fault(on_fault)
            .with_supervision(restart);
        let bank = bank(options);
        let _: Balance = bank.payer.ask_blocking(&bank.pay).unwrap();
        bank.payer.ask_blocking::<_, Balance>(&bank.bad()).unwrap_err();
        eventually("the restart", || bank.payer.state() == ActorState::Active);
        assert_eq!(bank.state(&bank.payer).balance, balance, "{on_fault:?}");
        // What it sent goes nowhere, whatever becomes of the state.
        assert_eq!(bank.state(&bank.paid).balance, 107, "{on_fault:?}");
        let after: Balance = bank.payer.ask_blocking(&bank.pay).unwrap();
        assert_eq!(after.amount, balance - 7, "{on_fault:?}");
        // By hand it begins anew.
        block_on(bank.payer.restart()).unwrap();
        assert_eq!(bank.state(&bank.payer), FIRST);
    }
}

#[derive(Clone, Debug, PartialEq, RingMessage)]
pub(super) struct Batch {
    pub(super) values: Vec<f32>,
    pub(super) to: u32,
    pub(super) fails: u32,
}

/// Hands the values on, then faults where it is told to.
#[ring_kernel]
pub(super) fn hand_on(ctx: &mut Context, handed: &mut u32, batch: BatchView) {
    *handed += 1;
    let sum = ctx.get(batch.values, 0);
    ctx.send(
        batch.to,
        BatchView {
            values: batch.values,
            to: u32::MAX,
            fails: 0,
        },
    );
    let table = [sum; 4];
    if table[batch.fails as usize] < 0.0 {
        *handed += 1;
    }
}

pub(crate) fn vectors_stay_with_the_message_that_faulted() {
    let runtime = runtime();
    let options = LaunchOptions::new(hand_on::handler());
    let kernel = runtime.launch_blocking("hands on", options).unwrap();
    let batch = |fails| Batch {
        values: vec![2.5; 40],
        to: u32::MAX,
        fails,
    };
    kernel.send(&batch(9)).unwrap();
    eventually("the fault", || kernel.state() == ActorState::Faulted);
    eventually("the letter", || runtime.dead_letters().counts().total() == 1);
    block_on(runtime.idle());
    assert_eq!(kernel.read_state::<u32>().unwrap(), 0);
    assert!(block_on(kernel.activate()).is_ok());
    kernel.send(&batch(1)).unwrap();
    let back: Batch = block_on(kernel.receive()).unwrap();
    assert_eq!(back.values, [2.5; 40]);
    assert_eq!(kernel.read_state::<u32>().unwrap(), 1);
    // The letter keeps its own.
    assert_eq!(runtime.arena().blocks, 1);
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Lanes {
    values: [u32; 64],
}

/// All lanes write; the one that is named faults.
#[ring_kernel(group)]
fn write_all(ctx: &mut Context, lanes: &mut Lanes, pay: Pay) -> Balance {
    let mut at = ctx.thread_index();
    while at < 64 {
        lanes.values[at as usize] += 1;
        at += ctx.group_size();
    }
    ctx.sync();
    if ctx.thread_index() == pay.to {
        lanes.values[pay.place as usize] += 1;
    }
    ctx.sync();
    Balance {
        amount: 1,
        changes: lanes.values[63],
    }
}

pub(crate) fn a_group_faults_as_one_lane_does() {
    let runtime = runtime();
    let options = LaunchOptions::new(write_all::handler())
        .with_state(Lanes { values: [5; 64] })
        .with_block_size(32);
    let group = match runtime.launch_blocking("group", options) {
        Ok(group) => group,
        // By name, where an engine cannot.
        Err(error) => {
            assert!(error.to_string().contains("which WGSL lacks"), "{error}");
            return;
        }
    };
    // Lane 0 is there on each engine, others where a group has several.
    for to in [0, 3] {
        let bad = Pay {
            to,
            topic: 0,
            amount: 0,
            place: 64,
        };
        let before: Lanes = group.read_state().unwrap();
        match group.ask_blocking::<_, Balance>(&bad) {
            Err(ActorError::Faulted { .. }) => {
                assert!(group.read_state::<Lanes>().unwrap() == before, "lane {to}");
                block_on(group.activate()).unwrap();
            }
            Ok(_) if to != 0 => {}
            other => panic!("lane {to}: {other:?}"),
        }
        let after: Balance = group.ask_blocking(&Pay { place: 0, ..bad }).unwrap();
        assert!(after.changes > before.values[63]);
    }
}

/// Writes, then loops for ever where it is told to.
#[ring_kernel]
pub(super) fn loops(_ctx: &mut Context, state: &mut u32, message: Deposit) -> Deposit {
    *state += 1;
    let mut at = message.amount;
    while at != 0 {
        at = (at ^ 6) | 1;
    }
    Deposit {
        amount: *state as i32,
    }
}

pub(crate) fn a_handler_that_does_not_end_is_undone() {
    let runtime = runtime();
    let limited = |on_fault: OnFault| {
        LaunchOptions::new(loops::handler())
            .with_run_limit(Duration::from_millis(30))
            .with_on_fault(on_fault)
    };
    let kernel = runtime
        .launch_blocking("loops", limited(OnFault::Transactional))
        .unwrap();
    if let Err(error) = runtime.launch_blocking("torn", limited(OnFault::KeepState)) {
        let said = error.to_string();
        assert!(
            said.contains("keeping the state of a handler that runs for longer"),
            "{said}"
        );
    }
    let one: Deposit = kernel.ask_blocking(&Deposit { amount: 0 }).unwrap();
    assert_eq!(one.amount, 1);
    let error = kernel
        .ask_blocking::<_, Deposit>(&Deposit { amount: 4 })
        .unwrap_err();
    assert!(matches!(error, ActorError::Faulted { .. }), "{error}");
    assert_eq!(kernel.read_state::<u32>().unwrap(), 1);
    block_on(kernel.activate()).unwrap();
    let two: Deposit = kernel.ask_blocking(&Deposit { amount: 0 }).unwrap();
    assert_eq!(two.amount, 2);
}

/// Counts as far as it is told to, and what it began.
#[ring_kernel]
pub(super) fn counts(_ctx: &mut Context, begun: &mut u32, message: Deposit) -> Balance {
    *begun += 1;
    let mut sum = 0i32;
    let mut i = 0;
    while i < message.amount {
        sum += i & 3;
        i += 1;
    }
    Balance {
        amount: sum,
        changes: *begun,
    }
}

pub(crate) fn what_takes_long_is_handled_once() {
    let runtime = runtime();
    for limit in [None, Some(Duration::from_secs(60))] {
        let mut options = LaunchOptions::new(counts::handler()).with_actors(3);
        options = match limit {
            Some(limit) => options.with_run_limit(limit),
            None => options,
        };
        let name = format!("counts within {limit:?}");
        let kernel = runtime.launch_blocking(&name, options).unwrap();
        // Without a limit resident ones have five seconds, also on a busy machine.
        let many = limit.map_or(20_000, |_| 100_000);
        for (number, turns) in (1u32..).zip([8, many, 8, 2 * many]) {
            // Beside it others are asked for less.
            let few = Deposit { amount: 4 };
            (1..3).for_each(|other| kernel.actor(other).unwrap().send(&few).unwrap());
            let first = kernel.actor(0).unwrap();
            match first.ask_blocking::<_, Balance>(&Deposit { amount: turns }) {
                Ok(done) => assert_eq!((done.amount, done.changes), (turns / 4 * 6, number)),
                // Where a driver ends loops, that is told.
                Err(ActorError::Faulted { fault, .. }) => {
                    assert!(fault.contains("ended before its time"), "{fault}");
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
        block_on(runtime.idle());
        for other in 1..3 {
            assert_eq!(kernel.actor(other).unwrap().read_state::<u32>().unwrap(), 4);
        }
    }
}
