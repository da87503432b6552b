//! A bank of a few accounts that pay each other while everything goes wrong that a simulation can let go wrong, and its audit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use perpetua::actors::runtime::{PerpetuaRuntime, TraceEvent};
use perpetua::actors::{
    ActorState, Context, DeadLetter, KernelHandle, LaunchOptions, RingMessage, Simulation, Supervision,
    ring_kernel,
};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

const FIRST: i32 = 100;

/// Pays `amount` to another account; `number` names the payment.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Pay {
    to: u32,
    amount: i32,
    number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Deposit {
    amount: i32,
    number: u32,
}

/// An account; bit `n` of `paid` and `got` stands for payment `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Account {
    balance: i32,
    paid: u32,
    got: u32,
    /// Messages handled twice, and payments not in the order of sending.
    wrong: u32,
    last: u32,
}

#[ring_kernel(also(deposit))]
fn account(ctx: &mut Context, account: &mut Account, pay: Pay) {
    let bit = 1u32 << pay.number;
    if (account.paid & bit) != 0 || pay.number < account.last {
        account.wrong += 1;
    }
    account.last = pay.number;
    account.paid |= bit;
    account.balance -= pay.amount;
    ctx.send(
        pay.to,
        Deposit {
            amount: pay.amount,
            number: pay.number,
        },
    );
}

#[ring_kernel]
fn deposit(_ctx: &mut Context, account: &mut Account, deposit: Deposit) {
    let bit = 1u32 << deposit.number;
    if (account.got & bit) != 0 {
        account.wrong += 1;
    }
    account.got |= bit;
    account.balance += deposit.amount;
}

/// Decides what the host does; apart from the simulation's own numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (((self.0 >> 33) * u64::from(end)) >> 31) as u32
    }
}

/// What a run has come to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) handled: u64,
    pub(crate) faulted: u64,
    pub(crate) dead: u64,
    pub(crate) refused: u64,
    pub(crate) restored: u64,
    pub(crate) traces: Vec<Vec<TraceEvent>>,
}

/// Letters of the payments, by what they are.
#[derive(Default)]
struct Letters {
    payments: BTreeSet<u32>,
    deposits: BTreeMap<u32, i32>,
}

impl Letters {
    fn add(&mut self, letters: &[DeadLetter]) {
        for DeadLetter { packet, .. } in letters {
            let new = match packet.header.type_id {
                Pay::TYPE_ID => self.payments.insert(packet.payload[2]),
                Deposit::TYPE_ID => {
                    let amount = packet.payload[0] as i32;
                    self.deposits.insert(packet.payload[1], amount).is_none()
                }
                other => panic!("a letter of type {other}"),
            };
            assert!(new, "a message died twice: {packet:?}");
        }
    }
}

/// The capacity of each mailbox in the run of a seed.
pub(crate) fn capacity(seed: u64) -> usize {
    2 << Dice(seed).below(3)
}

/// Runs one seed and audits it.
pub(crate) fn run(seed: u64, traced: bool) -> Report {
    let mut dice = Dice(seed);
    let capacity = 2 << dice.below(3);
    let accounts = 2 + dice.below(4);
    let payments = 4 + dice.below(28);
    let simulation = || {
        let simulation = Simulation::new(seed).with_fault_one_in([0, 3, 10, 40][seed as usize % 4]);
        if traced { simulation.traced() } else { simulation }
    };
    let build = || {
        PerpetuaRuntime::builder()
            .simulated(simulation())
            .patience(Duration::from_millis(2))
            .build_blocking()
            .unwrap()
    };
    let mut options = LaunchOptions::new(account::handler())
        .with_actors(accounts)
        .with_queue_capacity(capacity)
        .with_state(Account {
            balance: FIRST,
            ..Account::default()
        });
    if dice.below(3) > 0 {
        options = options.with_supervision(Supervision::Restart {
            max: 1 + dice.below(4),
            backoff: Duration::from_micros(u64::from(dice.below(3000))),
        });
    }
    if dice.below(3) == 0 {
        options = options.with_run_limit(Duration::from_millis(1));
    }
    let mut runtime = build();
    let mut all = runtime.launch_blocking("accounts", options).unwrap();
    let (mut report, mut letters) = (Report::default(), Letters::default());
    let mut accepted = BTreeSet::new();
    let end = |runtime: &PerpetuaRuntime, report: &mut Report, letters: &mut Letters| {
        letters.add(&runtime.dead_letters().letters());
        report.dead += runtime.dead_letters().counts().total();
        report.traces.push(runtime.trace());
    };
    for number in 0..payments {
        let pay = Pay {
            to: dice.below(accounts),
            amount: 1 + dice.below(9) as i32,
            number,
        };
        match all.actor(dice.below(accounts)).unwrap().send(&pay) {
            Ok(()) => drop(accepted.insert(number)),
            Err(_) => report.refused += 1,
        }
        // What an owner of the system may do at any time; what he may not do now is refused.
        let one = all.actor(dice.below(accounts)).unwrap();
        match dice.below(24) {
            0 => drop(block_on(one.deactivate())),
            1 | 2 => drop(block_on(one.activate())),
            3 => drop(one.read_state::<Account>()),
            4 => block_on(runtime.sleep(Duration::from_micros(u64::from(dice.below(500))))),
            5 if dice.below(4) == 0 => drop(block_on(one.terminate())),
            6 if all.states().iter().any(|state| *state != ActorState::Terminated) => {
                // Killed behind a checkpoint, and begun again from it.
                let bytes = runtime.checkpoint_bytes().unwrap();
                end(&runtime, &mut report, &mut letters);
                drop((one, all, runtime));
                runtime = build();
                runtime.register(account::handler());
                all = runtime.restore_bytes(&bytes).unwrap().remove(0);
                report.restored += 1;
            }
            _ => {}
        }
    }
    // Whoever waits is helped up until all is done.
    loop {
        block_on(runtime.idle());
        let down = |actor: &KernelHandle| match actor.state() {
            ActorState::Faulted | ActorState::Deactivated => block_on(actor.activate()).is_ok(),
            _ => false,
        };
        if !(0..accounts).any(|i| down(&all.actor(i).unwrap())) {
            break;
        }
    }
    end(&runtime, &mut report, &mut letters);
    audit(&all, accounts, &accepted, &letters, &mut report);
    report
}

/// Every accepted payment is handled or dead, every deposit is where its payment sent it or dead, and all money is there.
fn audit(
    all: &KernelHandle,
    accounts: u32,
    accepted: &BTreeSet<u32>,
    letters: &Letters,
    report: &mut Report,
) {
    let mut sum: i32 = letters.deposits.values().sum();
    let (mut paid, mut got, mut lost) = (0u32, 0u32, 0);
    for i in 0..accounts {
        let one = all.actor(i).unwrap();
        let metrics = one.metrics();
        report.handled += metrics.messages_processed;
        report.faulted += metrics.errors_encountered;
        let Ok(state) = one.read_state::<Account>() else {
            // It is gone, with its money.
            lost += 1;
            continue;
        };
        assert_eq!(state.wrong, 0, "{state:?}");
        assert_eq!(
            (paid & state.paid, got & state.got),
            (0, 0),
            "two accounts had one message"
        );
        paid |= state.paid;
        got |= state.got;
        sum += state.balance;
    }
    let dead: u32 = letters.payments.iter().map(|number| 1 << number).sum();
    let deposits: u32 = letters.deposits.keys().map(|number| 1 << number).sum();
    assert_eq!((paid & dead, got & deposits), (0, 0), "handled and dead");
    if lost == 0 {
        let all: u32 = accepted.iter().map(|number| 1 << number).sum();
        assert_eq!(paid | dead, all, "an accepted payment is nowhere");
        assert_eq!(
            got | deposits,
            paid,
            "a deposit is nowhere, or came without its payment"
        );
        assert_eq!(sum, FIRST * accounts as i32, "money came or went");
    }
}
