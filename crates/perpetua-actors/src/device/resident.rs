//! The kernel that stays on a device: a lane for each home. Takes packets from the host and from other homes, runs the handler,
//! delivers what it sent. Must not know the handler: the macro is given its state's type and the function that calls it.

/// The resident kernel `$name` of the handler that `$dispatch` calls, with states of type `$state`.
#[doc(hidden)]
#[macro_export]
macro_rules! __resident_kernel {
    ([$($vis:tt)*] $name:ident, [$($state:tt)+], $dispatch:ident) => {
        #[doc(hidden)]
        #[allow(
            missing_docs,
            unreachable_pub,
            dead_code,
            unused_assignments,
            unused_labels,
            reason = "generated"
        )]
        #[::perpetua::kernel(block_size = (1), interpret)]
        #[allow(
            clippy::too_many_arguments,
            clippy::needless_range_loop,
            clippy::cast_possible_truncation,
            reason = "a kernel's arguments are its buffers; kernels have no iterators"
        )]
        $($vis)* fn $name(
            ingress: &[::perpetua::kernel::resident::U32x4],
            egress: &mut [::perpetua::kernel::resident::U32x4],
            orders: &mut [u32],
            reports: &mut [::perpetua::kernel::resident::U32x4],
            inbox: &mut [::perpetua::kernel::resident::U32x4],
            homes: &mut [u32],
            actors: &mut [u32],
            directory: &[u32],
            states: &mut [$($state)+],
            first_states: &[$($state)+],
            first_actor: u32,
            first_home: u32,
            ring_mask: u32,
            box_mask: u32,
            box_room: u32,
            patience: u32,
            time_offset: u64,
        ) {
            let home = first_home as usize + ::perpetua::prelude::block_idx_x() as usize;
            let words = home * 64;
            let ring = home * (ring_mask as usize + 1);
            let boxes = home * (box_mask as usize + 1);
            let order = home * 16;
            let report = home * 4;
            let mut next_in = homes[words];
            let mut next_out = homes[words + 1];
            let mut handled = homes[words + 2];
            let mut faults = homes[words + 3];
            let mut refused = homes[words + 4];
            let mut last = homes[words + 5] as u64 | ((homes[words + 6] as u64) << 32);
            let mut next_box = ::perpetua::prelude::atomic_load(&homes[words + 32]);
            // Packets that the host has taken out, as far as this home knows.
            let mut taken_out = next_out;
            let mut polls = 0u32;
            let mut idle = 0u32;
            let mut running = true;
            let mut ctx = ::perpetua::actors::Context::new(0, 0, 1);
            while running {
                let at = (ring + (next_in & ring_mask) as usize) * 8;
                let (mut packet, mut found) = ::perpetua::actors::device::slots::read_from_host(ingress, at, next_in + 1);
                let from_host = found;
                if found {
                    next_in += 1;
                } else {
                    let at = (boxes + (next_box & box_mask) as usize) * 8;
                    let (other, there) = ::perpetua::actors::device::slots::read_from_device(inbox, at, next_box + 1);
                    if there {
                        packet = other;
                        found = true;
                        next_box += 1;
                        // Its words are here: their tags were compared.
                        ::perpetua::prelude::atomic_store(&mut homes[words + 32], next_box);
                    }
                }
                polls += 1;
                if !found {
                    idle += 1;
                    if (polls & 1023) == 0 {
                        let beat = ::perpetua::kernel::resident::U32x4 { x: next_in, y: handled, z: next_out, w: polls };
                        ::perpetua::prelude::atomic_store_explicit(&mut reports[report], beat, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                    }
                    if idle > patience {
                        ::perpetua::prelude::nap(500);
                    }
                    continue;
                }
                idle = 0;
                let kind = packet[6] & 255;
                let actor = packet[0];
                let index = (actor - first_actor) as usize;
                let sent = packet[4] as u64 | ((packet[5] as u64) << 32);
                let clock = ((::perpetua::prelude::clock_nanos() + time_offset) / 1000) << 16;
                last = clock.max(last + 1).max(sent + 1);
                // What becomes of it: 0 it is done, else why it was not delivered.
                let mut reason = 0u32;
                let mut fault = 0u32;
                let mut entries = 0u32;
                if kind == 5 {
                    if packet[2] == 1 {
                        running = false;
                    } else if packet[2] == 2 {
                        actors[actor as usize * 4] = packet[8];
                    } else {
                        states[index] = first_states[0];
                        actors[actor as usize * 4] = 2;
                    }
                } else if actors[actor as usize * 4] != 2 {
                    reason = 1;
                } else if packet[7] != 0 && last > sent + ((packet[7] as u64) << 16) {
                    reason = 2;
                } else {
                    ctx.begin(actor, packet[1], packet[3], last as u32, (last >> 32) as u32);
                    let mut known = false;
                    'handled: {
                        known = $dispatch(
                            &mut ctx,
                            &mut states[index],
                            packet[2],
                            ::perpetua::actors::device::slots::payload_of(packet),
                        );
                    }
                    fault = ::perpetua::prelude::catch_fault();
                    handled += 1;
                    if fault != 0 {
                        faults += 1;
                        actors[actor as usize * 4] = 5;
                        actors[actor as usize * 4 + 2] += 1;
                    } else if !known {
                        reason = 3;
                    } else {
                        actors[actor as usize * 4 + 1] += 1;
                    }
                    entries = ctx.entries();
                }
                // What the handler sent, and at the end, where somebody must hear of it, what became of the packet.
                let closes = kind == 1 && entries == 0 || kind == 5 || reason != 0 || fault != 0;
                let total = entries + closes as u32;
                for i in 0..total {
                    let mut out = packet;
                    let mut to_host = true;
                    if i < entries {
                        out[0] = ctx.outbox_word(i, 0);
                        out[1] = actor;
                        out[2] = ctx.outbox_word(i, 1);
                        out[3] = ctx.outbox_word(i, 2);
                        out[6] = ctx.outbox_word(i, 3);
                        out[7] = 0;
                        out[8] = ctx.outbox_word(i, 4);
                        out[9] = ctx.outbox_word(i, 5);
                        out[10] = ctx.outbox_word(i, 6);
                        out[11] = ctx.outbox_word(i, 7);
                        out[12] = ctx.outbox_word(i, 8);
                        out[13] = ctx.outbox_word(i, 9);
                        out[14] = ctx.outbox_word(i, 10);
                        out[15] = ctx.outbox_word(i, 11);
                        out[16] = ctx.outbox_word(i, 12);
                        out[17] = ctx.outbox_word(i, 13);
                        out[18] = ctx.outbox_word(i, 14);
                        out[19] = ctx.outbox_word(i, 15);
                        out[20] = ctx.outbox_word(i, 16);
                        out[21] = ctx.outbox_word(i, 17);
                        out[22] = ctx.outbox_word(i, 18);
                        out[23] = ctx.outbox_word(i, 19);
                        to_host = out[0] == u32::MAX || (out[6] & 255) == 3;
                    } else if fault != 0 {
                        // The message as it came, and where its handler faulted.
                        out[6] = 4 | (packet[6] & 0xffff_ff00);
                        out[7] = fault;
                    } else if reason != 0 {
                        out[6] = 7 | (packet[6] & 0xffff_ff00);
                        out[7] = reason;
                    } else {
                        out[1] = actor;
                        out[6] = 6;
                    }
                    last += 1;
                    out[4] = last as u32;
                    out[5] = (last >> 32) as u32;
                    if !to_host {
                        let to = out[0] as usize;
                        let mut why = 5u32;
                        if to < directory.len() && directory[to] != u32::MAX {
                            why = 4;
                            let their = directory[to] as usize;
                            let mut tries = 0u32;
                            while why == 4 && tries < 100_000 {
                                let tickets = ::perpetua::prelude::atomic_load(&homes[their * 64 + 33]);
                                let theirs_taken = ::perpetua::prelude::atomic_load(&homes[their * 64 + 32]);
                                // Each home may have looked before any took its ticket: there is room for all.
                                if tickets - theirs_taken < box_room {
                                    let ticket = ::perpetua::prelude::atomic_add(&mut homes[their * 64 + 33], 1);
                                    let slot = their * (box_mask as usize + 1) + (ticket & box_mask) as usize;
                                    ::perpetua::actors::device::slots::write_to_device(inbox, slot * 8, ticket + 1, out);
                                    why = 0;
                                } else if their == home {
                                    // Nobody else takes packets out of its own box.
                                    tries = 100_000;
                                } else {
                                    tries += 1;
                                }
                            }
                        }
                        if why != 0 {
                            refused += 1;
                            out[6] = 7 | (out[6] & 0xffff_ff00);
                            out[7] = why;
                            to_host = true;
                        }
                    }
                    if to_host {
                        while next_out - taken_out > ring_mask {
                            taken_out = ::perpetua::prelude::atomic_load_explicit(&orders[order], ::perpetua::kernel::atomic::Ordering::Acquire, ::perpetua::kernel::atomic::Scope::System);
                        }
                        let slot = ring + (next_out & ring_mask) as usize;
                        ::perpetua::actors::device::slots::write_to_host(egress, slot * 8, next_out + 1, out);
                        next_out += 1;
                    }
                }
                if from_host || total != 0 {
                    let beat = ::perpetua::kernel::resident::U32x4 { x: next_in, y: handled, z: next_out, w: polls };
                    ::perpetua::prelude::atomic_store_explicit(&mut reports[report], beat, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                }
            }
            homes[words] = next_in;
            homes[words + 1] = next_out;
            homes[words + 2] = handled;
            homes[words + 3] = faults;
            homes[words + 4] = refused;
            homes[words + 5] = last as u32;
            homes[words + 6] = (last >> 32) as u32;
            let end = ::perpetua::kernel::resident::U32x4 { x: 1, y: faults, z: refused, w: next_box };
            ::perpetua::prelude::atomic_store_explicit(&mut reports[report + 1], end, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
        }
    };
}
