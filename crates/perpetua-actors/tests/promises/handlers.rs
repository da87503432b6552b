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
