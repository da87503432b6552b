//! What a handler gives back, and what it replies beside that.

use perpetua::actors::{Context, KernelHandle, LaunchOptions, RingMessage, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::runtime;

/// Is answered with its number, behind two further replies.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Question {
    number: u32,
}

/// The same, without an answer.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Remark {
    number: u32,
}

/// Is sent on as a question.
#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Relay {
    to: u32,
    number: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Word {
    number: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Heard {
    count: u32,
    words: [u32; 8],
}

#[ring_kernel(also(remark, relay, hear))]
fn question(ctx: &mut Context, _heard: &mut Heard, question: Question) -> Word {
    ctx.reply(Word {
        number: question.number + 1,
    });
    ctx.reply(Word {
        number: question.number + 2,
    });
    Word {
        number: question.number,
    }
}

#[ring_kernel]
fn remark(ctx: &mut Context, _heard: &mut Heard, remark: Remark) {
    ctx.reply(Word {
        number: remark.number,
    });
    ctx.reply(Word {
        number: remark.number + 1,
    });
}

#[ring_kernel]
fn relay(ctx: &mut Context, _heard: &mut Heard, relay: Relay) {
    ctx.send(relay.to, Question { number: relay.number });
}

#[ring_kernel]
fn hear(_ctx: &mut Context, heard: &mut Heard, word: Word) {
    heard.words[(heard.count & 7) as usize] = word.number;
    heard.count += 1;
}

fn received(kernel: &KernelHandle, count: usize) -> Vec<u32> {
    let receive = |_| block_on(kernel.receive::<Word>()).unwrap().number;
    (0..count).map(receive).collect()
}

pub(crate) fn an_answer_comes_before_further_replies() {
    let runtime = runtime();
    let launch = |name: &str| {
        let options = LaunchOptions::new(question::handler());
        runtime.launch_blocking(name, options).unwrap()
    };
    let [kernel, other] = [launch("answers"), launch("listens")];
    // The asker gets what the handler gave back; what it replied beside that is for whoever receives.
    let answer: Word = kernel.ask_blocking(&Question { number: 10 }).unwrap();
    assert_eq!(answer.number, 10);
    assert_eq!(received(&kernel, 2), [11, 12]);
    // One that gives nothing back answers with its first reply.
    let answer: Word = kernel.ask_blocking(&Remark { number: 20 }).unwrap();
    assert_eq!(answer.number, 20);
    assert_eq!(received(&kernel, 1), [21]);
    // To a message, all are received, in the same order.
    kernel.send(&Question { number: 30 }).unwrap();
    assert_eq!(received(&kernel, 3), [30, 31, 32]);
    // And an actor that has sent it takes them as messages.
    let relay = Relay {
        to: kernel.id().0,
        number: 40,
    };
    other.send(&relay).unwrap();
    super::eventually("three words", || other.read_state::<Heard>().unwrap().count == 3);
    let heard: Heard = other.read_state().unwrap();
    assert_eq!(heard.words[..3], [40, 41, 42]);
    block_on(runtime.idle());
    assert_eq!(kernel.try_receive::<Word>().unwrap(), None);
    assert_eq!(runtime.dead_letters().counts().total(), 0);
}
