//! The actors of these tests: accounts that pay each other.

use perpetua::actors::{Context, RingMessage, ring_kernel};
use perpetua::prelude::*;

/// Pays another account, tells the host and a topic, and faults where `place` is above 3.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Pay {
    pub(crate) to: u32,
    pub(crate) topic: u32,
    pub(crate) amount: i32,
    pub(crate) place: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Deposit {
    pub(crate) amount: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Balance {
    pub(crate) amount: i32,
    pub(crate) changes: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Account {
    pub(crate) balance: i32,
    pub(crate) changes: u32,
    pub(crate) places: [u32; 4],
}

/// Does all that it does before it faults.
#[ring_kernel(also(deposit))]
pub(crate) fn pay(ctx: &mut Context, account: &mut Account, pay: Pay) -> Balance {
    account.balance -= pay.amount;
    account.changes += 1;
    let deposit = Deposit { amount: pay.amount };
    ctx.send(pay.to, deposit);
    ctx.send(u32::MAX, deposit);
    ctx.publish(pay.topic, deposit);
    if pay.place > 3 {
        // Sooner than the answer: an asker must not take it for one.
        ctx.reply(Balance {
            amount: -1,
            changes: 0,
        });
    }
    account.places[pay.place as usize] += 1;
    Balance {
        amount: account.balance,
        changes: account.changes,
    }
}

#[ring_kernel]
pub(crate) fn deposit(_ctx: &mut Context, account: &mut Account, deposit: Deposit) {
    account.balance += deposit.amount;
    account.changes += 1;
}

/// Pays one each to eight of so many accounts in a row.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Burst {
    pub(crate) first: u32,
    pub(crate) accounts: u32,
    pub(crate) at: u32,
}

#[ring_kernel(also(deposit))]
pub(crate) fn burst(ctx: &mut Context, account: &mut Account, burst: Burst) {
    for i in 0..8 {
        let to = burst.first + (burst.at + i) % burst.accounts;
        ctx.send(to, Deposit { amount: 1 });
    }
    // Of bursts in a row: one that does not come behind the one before it.
    account.places[0] += (burst.at != 8 * account.changes) as u32;
    account.changes += 1;
}

/// Comes back eight times, in each of eight messages, and so on.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Branch {
    pub(crate) to: u32,
    pub(crate) back: u32,
    pub(crate) depth: u32,
}

#[ring_kernel]
pub(crate) fn branch(ctx: &mut Context, handled: &mut u32, message: Branch) {
    *handled += 1;
    if message.depth > 0 {
        for _ in 0..8 {
            ctx.send(
                message.to,
                Branch {
                    to: message.back,
                    back: message.to,
                    depth: message.depth - 1,
                },
            );
        }
    }
}

/// Sends twenty, and answers how many its outbox took.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
pub(crate) struct Flood {
    pub(crate) to: u32,
}

#[ring_kernel(also(pay, deposit))]
pub(crate) fn flood(ctx: &mut Context, account: &mut Account, flood: Flood) -> Balance {
    let mut taken = 0;
    for i in 0..20 {
        if ctx.send(flood.to, Deposit { amount: i }) {
            taken += 1;
        }
    }
    account.changes += 1;
    Balance {
        amount: taken,
        changes: account.changes,
    }
}
