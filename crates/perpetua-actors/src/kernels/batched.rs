//! The kernel that handles a batch: a lane for each actor that has messages in it, which takes them one after the other. For
//! devices where no kernel can stay; the host routes what comes out into the next batch. Must not know the handler: the macro
//! is given its state's type and the function that calls it.

/// Words of what a batch gives for each packet: the entries of an outbox.
pub const OUT_WORDS: usize = crate::context::OUTBOX_WORDS;

/// Words of a run: its first packet, how many there are, the actor's number, and the index of its state.
pub const RUN_WORDS: usize = 4;

/// The batch kernel `$name` of the handler that `$dispatch` calls, with states of type `$state`.
///
/// `packets`: 24 words each, by actor. `runs`: [`RUN_WORDS`] each, one a lane. `out`: [`OUT_WORDS`] a packet. `counts`: for each
/// packet the entries that it gave, 256 if the handler took its type, and from bit 16 on how many more its outbox had no room for. The blocks of packets that bring one lie in the arena, where
/// their packets' last word says. `states`: one for each run; where `undo` is not 0, behind all of these as many again, which hold what each
/// was before the message that its run is at. `done`: for each run how many packets were
/// handled: where less than all, the lane faulted on the next one. Where handlers' time is limited, it holds before the launch how many turns
/// each lane's loops may make (`pass::limit_turns`).
#[doc(hidden)]
#[macro_export]
macro_rules! __batched_kernel {
    ([$($vis:tt)*] $name:ident, [$($state:tt)+], $dispatch:ident, [$($arena:ident $block:ident)?]) => {
        #[doc(hidden)]
        #[allow(missing_docs, unreachable_pub, dead_code, reason = "generated")]
        #[::perpetua::kernel(interpret)]
        #[allow(
            clippy::too_many_arguments,
            clippy::needless_range_loop,
            reason = "a kernel's arguments are its buffers; kernels have no iterators"
        )]
        $($vis)* fn $name(
            packets: &[u32],
            runs: &[u32],
            states: &mut [$($state)+],
            out: &mut [u32],
            counts: &mut [u32],
            done: &mut [u32],
            now_low: u32,
            now_high: u32,
            total: u32,
            undo: u32,
            $($arena: &mut [u32],)?
        ) {
            // A group of one lane waits for nobody.
            let phases = ::perpetua::prelude::shared_array::<[u32; 32]>();
            let lane = ::perpetua::prelude::global_id_x();
            if lane >= total as usize {
                return;
            }
            let first = runs[lane * 4];
            let count = runs[lane * 4 + 1];
            let actor = runs[lane * 4 + 2];
            let index = runs[lane * 4 + 3] as usize;
            let mut ctx = ::perpetua::actors::Context::new(actor, 0, 1);
            for k in 0..count {
                done[lane] = k;
                if undo != 0 {
                    states[total as usize + index] = states[index];
                }
                let packet = (first + k) as usize;
                let at = packet * 24;
                let mut payload = [0u32; 16];
                for i in 0..16 {
                    payload[i] = packets[at + 8 + i];
                }
                // The time in halves: not every device has 64-bit integers.
                let low = now_low.wrapping_add(k + 1);
                let high = now_high + (low < now_low) as u32;
                ctx.begin(actor, packets[at + 1], packets[at + 3], low, high);
                ctx.of_message(packets[at + 4], packets[at + 5], packets[at + 6]);
                $(let mut $block = ::perpetua::actors::span::Block::of(
                    $arena,
                    packets[at + 6],
                    payload[14],
                    payload[15],
                );)?
                let answer = $dispatch(
                    &mut ctx,
                    &mut states[index],
                    packets[at + 2],
                    payload,
                    phases
                    $(, $arena, &mut $block)?
                );
                let known = ctx.answer(answer);
                let entries = ctx.entries();
                for entry in 0..entries {
                    for word in 0..20 {
                        out[packet * 180 + (entry * 20 + word) as usize] = ctx.outbox_word(entry, word);
                    }
                }
                counts[packet] = entries | if known { 256 } else { 0 } | (ctx.refused() << 16);
            }
            done[lane] = count;
        }
    };
}
