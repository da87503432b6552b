//! The kernel that stays on a device: a work-group for each home. Takes packets from the host and from other homes, runs the
//! handler, delivers what it sent. Must not know the handler: the macro is given its state's type and the function that
//! calls it.
//!
//! Each subgroup of the home watches one source, for loads of one subgroup wait for each other: one or several the host's ring
//! (the bus takes a microsecond to bring a slot; two that look at different times see a packet sooner), one the home's box.
//! Who sees a packet takes the home's lock and handles it. The lanes of a subgroup go through it together. They move packets
//! together, eight lanes a slot, which the bus carries as one access; the first one runs the handler. What they tell each
//! other goes through workgroup memory.

/// The resident kernel `$name` of the handler that `$dispatch` calls, with states of type `$state`; `$group` says whether
/// several lanes run the handler together.
#[doc(hidden)]
#[macro_export]
macro_rules! __resident_kernel {
    ([$($vis:tt)*] $name:ident, [$($state:tt)+], $dispatch:ident, $group:literal, [$($arena:ident $block:ident)?]) => {
        #[doc(hidden)]
        #[allow(
            missing_docs,
            unreachable_pub,
            dead_code,
            unused_assignments,
            unused_labels,
            reason = "generated"
        )]
        #[::perpetua::kernel(block_size = (128), interpret)]
        #[allow(
            clippy::too_many_arguments,
            clippy::cast_possible_truncation,
            reason = "a kernel's arguments are its buffers"
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
            latencies: &mut [u32],
            first_actor: u32,
            first_home: u32,
            actor_count: u32,
            home_count: u32,
            ring_mask: u32,
            box_mask: u32,
            patience: u32,
            host_watchers: u32,
            time_offset: u64,
            run_limit: u64,
            group_size: u32,
            latencies_each: u32,
            $($arena: &mut [u32],)?
        ) {
            // A packet that has come, and one that goes out: behind its words the way that it takes, its slot and its tag.
            let mail = ::perpetua::prelude::workgroup_array::<[u32; 24]>();
            let post = ::perpetua::prelude::workgroup_array::<[u32; 27]>();
            // Packets to deliver. For a group: whether it runs the handler, and the fault that one of it met.
            let plan = ::perpetua::prelude::workgroup_array::<[u32; 3]>();
            // How often each lane of a group has waited for the others.
            let phases = ::perpetua::prelude::workgroup_array::<[u32; 32]>();
            // What the home knows: who has the lock may touch it. The numbers of the next packets of both rings are read without.
            let lock = ::perpetua::prelude::workgroup_array::<[u32; 1]>();
            let next = ::perpetua::prelude::workgroup_array::<[u32; 2]>();
            let stays = ::perpetua::prelude::workgroup_array::<[u32; 1]>();
            // Which subgroup had the lock last.
            let owner = ::perpetua::prelude::workgroup_array::<[u32; 1]>();
            let known = ::perpetua::prelude::workgroup_array::<[u32; 5]>();
            let stamp = ::perpetua::prelude::workgroup_array::<[u64; 1]>();
            let home = first_home as usize + ::perpetua::prelude::block_idx_x() as usize;
            let lane = ::perpetua::prelude::subgroup_lane();
            let part = (lane & 7) as usize;
            let leads = lane == 0;
            let watcher = ::perpetua::prelude::local_id_x() as u32 / 32;
            let words = home * 64;
            let ring = home * (ring_mask as usize + 1);
            let boxes = home * (box_mask as usize + 1);
            if ::perpetua::prelude::local_id_x() == 0 {
                lock[0] = 0;
                owner[0] = 0;
                stays[0] = 1;
                next[0] = homes[words];
                next[1] = ::perpetua::prelude::atomic_load(&homes[words + 32]);
                known[0] = homes[words + 1];
                // Packets that the host has taken out, as far as this home knows.
                known[1] = homes[words + 1];
                known[2] = homes[words + 2];
                known[3] = homes[words + 3];
                known[4] = homes[words + 4];
                stamp[0] = homes[words + 5] as u64 | ((homes[words + 6] as u64) << 32);
            }
            ::perpetua::prelude::sync_threads();
            let from_host = watcher < host_watchers;
            // Nobody else watches.
            let mut running = watcher <= host_watchers;
            let source = if from_host { 0usize } else { 1usize };
            let mut polls = 0u32;
            let mut idle = 0u32;
            let together = if $group { group_size } else { 1 };
            let mut ctx = ::perpetua::actors::Context::new(0, lane, together);
            while running {
                ::perpetua::prelude::converge();
                let number = ::perpetua::prelude::atomic_load_explicit(&next[source], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                let mut mine = ::perpetua::kernel::resident::U32x4 { x: 0, y: 0, z: 0, w: 0 };
                if from_host {
                    mine = ::perpetua::prelude::atomic_load_explicit(
                        &ingress[(ring + (number & ring_mask) as usize) * 8 + part],
                        ::perpetua::kernel::atomic::Ordering::Relaxed,
                        ::perpetua::kernel::atomic::Scope::System,
                    );
                } else {
                    mine = ::perpetua::prelude::atomic_load_explicit(
                        &inbox[(boxes + (number & box_mask) as usize) * 8 + part],
                        ::perpetua::kernel::atomic::Ordering::Relaxed,
                        ::perpetua::kernel::atomic::Scope::Device,
                    );
                }
                // By a reciprocal: devices divide slowly. What is lost, a quarter of a microsecond, the clock does not promise.
                let mut seen = ::perpetua::prelude::clock_nanos();
                let clock = (((seen + time_offset) as f64 * 0.001) as u64) << 12;
                polls += 1;
                ::perpetua::prelude::converge();
                if !::perpetua::prelude::subgroup_all(mine.w == number + 1) {
                    idle += 1;
                    if (polls & 1023) == 0 && watcher == 0 && leads {
                        let beat = ::perpetua::kernel::resident::U32x4 { x: number, y: known[2], z: known[0], w: polls };
                        ::perpetua::prelude::atomic_store_explicit(&mut reports[home * 4], beat, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                    }
                    if idle > patience {
                        ::perpetua::prelude::nap(500);
                    }
                    running = ::perpetua::prelude::atomic_load_explicit(&stays[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) != 0;
                    continue;
                }
                idle = 0;
                // One watcher at a time handles a packet; another may have had this one first.
                if leads {
                    while ::perpetua::prelude::atomic_exchange_explicit(
                        &mut lock[0],
                        1,
                        ::perpetua::kernel::atomic::Ordering::Relaxed,
                        ::perpetua::kernel::atomic::Scope::Workgroup,
                    ) != 0
                    {
                        // The handler's time begins when it can.
                        seen = ::perpetua::prelude::clock_nanos();
                    }
                }
                ::perpetua::prelude::converge();
                // What another one did with the lock comes first: the fence pairs with that of who released it. One's own needs
                // none, which spares most packets a wait.
                if ::perpetua::prelude::atomic_load_explicit(&owner[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) != watcher {
                    ::perpetua::prelude::thread_fence_block();
                    ::perpetua::prelude::converge();
                    if leads {
                        ::perpetua::prelude::atomic_store_explicit(&mut owner[0], watcher, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    }
                }
                let first = ::perpetua::prelude::atomic_load_explicit(&next[source], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) == number
                    && ::perpetua::prelude::atomic_load_explicit(&stays[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) != 0;
                if !first {
                    ::perpetua::prelude::converge();
                    if leads {
                        ::perpetua::prelude::thread_fence_block();
                        ::perpetua::prelude::atomic_store_explicit(&mut lock[0], 0, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    }
                    running = ::perpetua::prelude::atomic_load_explicit(&stays[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) != 0;
                    continue;
                }
                ::perpetua::prelude::converge();
                if leads {
                    ::perpetua::prelude::atomic_store_explicit(&mut next[source], number + 1, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    if !from_host {
                        // Its words are here: their tags were compared.
                        ::perpetua::prelude::atomic_store(&mut homes[words + 32], number + 1);
                    }
                }
                if lane < 8 {
                    mail[part * 3] = mine.x;
                    mail[part * 3 + 1] = mine.y;
                    mail[part * 3 + 2] = mine.z;
                }
                ::perpetua::prelude::converge();
                // What the first lane knows of the packet and of what became of it: 0 it is done, else why it was not delivered.
                let mut reason = 0u32;
                let mut fault = 0u32;
                let mut entries = 0u32;
                let mut answer = ::perpetua::actors::context::Answer::none();
                let mut runs = false;
                let mut begun = 0u64;
                let actor = mail[0];
                let index = (actor - first_actor) as usize;
                if leads {
                    let kind = mail[6] & 255;
                    let sent = mail[4] as u64 | ((mail[5] as u64) << 32);
                    let mut last = stamp[0];
                    last = clock.max(last + 1).max(sent + 1);
                    stamp[0] = last;
                    begun = last;
                    if kind == 5 {
                        if mail[2] == 1 {
                            ::perpetua::prelude::atomic_store_explicit(&mut stays[0], 0, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                        } else if mail[2] == 2 {
                            actors[actor as usize * 4] = mail[8];
                        } else {
                            states[index] = first_states[0];
                            actors[actor as usize * 4] = 2;
                        }
                    } else if actors[actor as usize * 4] != 2 {
                        reason = 1;
                    } else if mail[7] != 0 && last > sent + ((mail[7] as u64) << 12) {
                        reason = 2;
                    } else {
                        runs = true;
                    }
                }
                if $group {
                    if leads {
                        plan[1] = runs as u32;
                        plan[2] = 0;
                    }
                    phases[lane as usize] = 0;
                    ::perpetua::prelude::converge();
                    runs = plan[1] != 0 && lane < group_size;
                    begun = stamp[0];
                }
                let until = seen + run_limit;
                $(let mut $block = ::perpetua::actors::span::Block::of($arena, 0, 0, 0);)?
                if runs {
                    ctx.begin(actor, mail[1], mail[3], begun as u32, (begun >> 32) as u32);
                    $(
                        // What was written into the block before the packet was sent is read behind this.
                        ::perpetua::prelude::thread_fence_system();
                        $block = ::perpetua::actors::span::Block::of($arena, mail[6], mail[22], mail[23]);
                    )?
                    'handled: {
                        answer = $dispatch(
                            &mut ctx,
                            &mut states[index],
                            mail[2],
                            [
                                mail[8], mail[9], mail[10], mail[11], mail[12], mail[13], mail[14], mail[15],
                                mail[16], mail[17], mail[18], mail[19], mail[20], mail[21], mail[22], mail[23],
                            ],
                            phases
                            $(, $arena, &mut $block)?
                        );
                    }
                    fault = ::perpetua::prelude::catch_fault(until);
                }
                if $group {
                    if runs {
                        // Nobody waits for who has ended.
                        ::perpetua::prelude::atomic_store_explicit(&mut phases[lane as usize], u32::MAX, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                        if fault != 0 {
                            ::perpetua::prelude::atomic_exchange_explicit(&mut plan[2], fault, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                        }
                    }
                    ::perpetua::prelude::converge();
                    fault = plan[2];
                }
                if leads {
                    let kind = mail[6] & 255;
                    if runs {
                        // Another lane faulted: the block goes with the message, not with the answer.
                        $(if fault != 0 && (answer.flags & 0x0080_0000) != 0 {
                            $block.take_back();
                        })?
                        if fault != 0 {
                            answer = ::perpetua::actors::context::Answer::none();
                            known[3] += 1;
                            actors[actor as usize * 4] = 5;
                            actors[actor as usize * 4 + 2] += 1;
                        } else if answer.known == 0 && kind != 2 && kind != 6 {
                            // An answer that the asker does not take as a message ends here.
                            reason = 3;
                        }
                        $(
                            // What the lanes wrote into the block is there before anybody is told: they have come together, and the
                            // first lane's part of each slot is stored behind this. Then a block that went nowhere is the host's.
                            ::perpetua::prelude::thread_fence_system();
                            if $block.is_given() {
                                mail[6] &= 0xff7f_ffff;
                            } else if $block.is_here() && fault == 0 && reason == 0 {
                                ::perpetua::prelude::atomic_store_explicit(
                                    &mut $arena[mail[23] as usize + 2],
                                    0,
                                    ::perpetua::kernel::atomic::Ordering::Relaxed,
                                    ::perpetua::kernel::atomic::Scope::System,
                                );
                            }
                        )?
                        entries = ctx.entries();
                    }
                    // The answer comes first, then what the handler sent, and at the end, where somebody must hear of it, what
                    // became of the packet.
                    let asked = kind == 1 && entries + answer.flags == 0 || kind == 5 && mail[3] != 0;
                    let closes = asked || reason != 0 || fault != 0;
                    plan[0] = entries + (answer.flags != 0) as u32 + closes as u32;
                }
                ::perpetua::prelude::converge();
                let total = plan[0];
                let mut at = 0u32;
                while at < total {
                    if leads {
                        let mut to = mail[0];
                        let mut flags = 0u32;
                        let mut sender = actor;
                        let mut note = 0u32;
                        let answers = (answer.flags != 0) as u32;
                        if at < answers {
                            to = mail[1];
                            flags = answer.flags;
                            post[2] = answer.type_id;
                            post[3] = mail[3];
                            post[8] = answer.payload[0];
                            post[9] = answer.payload[1];
                            post[10] = answer.payload[2];
                            post[11] = answer.payload[3];
                            post[12] = answer.payload[4];
                            post[13] = answer.payload[5];
                            post[14] = answer.payload[6];
                            post[15] = answer.payload[7];
                            post[16] = answer.payload[8];
                            post[17] = answer.payload[9];
                            post[18] = answer.payload[10];
                            post[19] = answer.payload[11];
                            post[20] = answer.payload[12];
                            post[21] = answer.payload[13];
                            post[22] = answer.payload[14];
                            post[23] = answer.payload[15];
                        } else if at < answers + entries {
                            let entry = at - answers;
                            to = ctx.outbox_word(entry, 0);
                            flags = ctx.outbox_word(entry, 3);
                            post[2] = ctx.outbox_word(entry, 1);
                            post[3] = ctx.outbox_word(entry, 2);
                            let mut word = 0usize;
                            while word < 16 {
                                post[8 + word] = ctx.outbox_word(entry, 4 + word as u32);
                                word += 1;
                            }
                        } else {
                            // The packet as it came, and what became of it: the fault, the reason, or just that it is done.
                            sender = mail[1];
                            post[2] = mail[2];
                            post[3] = mail[3];
                            let mut word = 8usize;
                            while word < 24 {
                                post[word] = mail[word];
                                word += 1;
                            }
                            if fault != 0 {
                                flags = 4 | (mail[6] & 0xffff_ff00);
                                note = fault;
                            } else if reason != 0 {
                                flags = 7 | (mail[6] & 0xffff_ff00);
                                note = reason;
                            } else {
                                flags = 6;
                                sender = actor;
                            }
                        }
                        let last = stamp[0] + 1;
                        stamp[0] = last;
                        let kind = flags & 255;
                        // To the host, or to a home's box.
                        let mut way = 1u32;
                        let mut slot = 0u32;
                        if to != u32::MAX && (kind == 0 || kind == 2) {
                            let mut why = 5u32;
                            let mut their_home = u32::MAX;
                            if to - first_actor < actor_count {
                                their_home = first_home + (to - first_actor) % home_count;
                            } else if (to as usize) < directory.len() {
                                their_home = ::perpetua::prelude::atomic_load(&directory[to as usize]);
                            }
                            if their_home != u32::MAX {
                                why = 4;
                                let their = their_home as usize;
                                let mut tries = 0u32;
                                while why == 4 && tries < 100_000 {
                                    // Room first, then a ticket: there are never more tickets than room.
                                    let before = ::perpetua::prelude::atomic_add(&mut homes[their * 64 + 34], 1);
                                    if before - ::perpetua::prelude::atomic_load(&homes[their * 64 + 32]) <= box_mask {
                                        let ticket = ::perpetua::prelude::atomic_add(&mut homes[their * 64 + 33], 1);
                                        slot = their_home * (box_mask + 1) + (ticket & box_mask);
                                        post[26] = ticket + 1;
                                        way = 2;
                                        why = 0;
                                    } else {
                                        ::perpetua::prelude::atomic_sub(&mut homes[their * 64 + 34], 1);
                                        // Nobody else takes packets out of its own box.
                                        tries = if their == home { 100_000 } else { tries + 1 };
                                    }
                                }
                            }
                            if why != 0 {
                                known[4] += 1;
                                flags = 7 | (flags & 0xffff_ff00);
                                note = why;
                            }
                        }
                        if way == 1 {
                            let out = known[0];
                            while out - known[1] > ring_mask {
                                known[1] = ::perpetua::prelude::atomic_load_explicit(&orders[home * 16], ::perpetua::kernel::atomic::Ordering::Acquire, ::perpetua::kernel::atomic::Scope::System);
                            }
                            slot = out & ring_mask;
                            known[0] = out + 1;
                            post[26] = out + 1;
                        }
                        post[0] = to;
                        post[1] = sender;
                        post[4] = last as u32;
                        post[5] = (last >> 32) as u32;
                        post[6] = flags;
                        post[7] = note;
                        post[24] = way;
                        post[25] = slot;
                    }
                    ::perpetua::prelude::converge();
                    if lane < 8 {
                        let vector = ::perpetua::kernel::resident::U32x4 {
                            x: post[part * 3],
                            y: post[part * 3 + 1],
                            z: post[part * 3 + 2],
                            w: post[26],
                        };
                        let slot = post[25] as usize;
                        if post[24] == 1 {
                            ::perpetua::prelude::atomic_store_explicit(
                                &mut egress[(ring + slot) * 8 + part],
                                vector,
                                ::perpetua::kernel::atomic::Ordering::Relaxed,
                                ::perpetua::kernel::atomic::Scope::System,
                            );
                        } else {
                            ::perpetua::prelude::atomic_store_explicit(
                                &mut inbox[slot * 8 + part],
                                vector,
                                ::perpetua::kernel::atomic::Ordering::Relaxed,
                                ::perpetua::kernel::atomic::Scope::Device,
                            );
                        }
                    }
                    at += 1;
                    ::perpetua::prelude::converge();
                }
                // Nobody may still look at the plan when another subgroup makes the next.
                ::perpetua::prelude::converge();
                if leads {
                    if runs {
                        // What nobody waits for comes behind the delivery.
                        known[2] += 1;
                        if answer.known != 0 {
                            actors[actor as usize * 4 + 1] += 1;
                        }
                        // How long the message was on its way, in microseconds: four buckets for each power of two.
                        let waited = (begun - (mail[4] as u64 | ((mail[5] as u64) << 32))) >> 12;
                        let short = waited.min(0xff_ffff) as u32;
                        let power = 29 - (short | 4).leading_zeros();
                        let bucket = (power * 4 + (short >> power)) as usize;
                        let row = if latencies_each != 0 { index } else { home - first_home as usize };
                        ::perpetua::prelude::atomic_add_explicit(&mut latencies[row * 96 + bucket], 1, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Device);
                    }
                    let beat = ::perpetua::kernel::resident::U32x4 { x: next[0], y: known[2], z: known[0], w: polls };
                    ::perpetua::prelude::atomic_store_explicit(&mut reports[home * 4], beat, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                    ::perpetua::prelude::thread_fence_block();
                    ::perpetua::prelude::atomic_store_explicit(&mut lock[0], 0, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                }
                running = ::perpetua::prelude::atomic_load_explicit(&stays[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) != 0;
            }
            ::perpetua::prelude::sync_threads();
            if ::perpetua::prelude::local_id_x() == 0 {
                homes[words] = next[0];
                homes[words + 1] = known[0];
                homes[words + 2] = known[2];
                homes[words + 3] = known[3];
                homes[words + 4] = known[4];
                homes[words + 5] = stamp[0] as u32;
                homes[words + 6] = (stamp[0] >> 32) as u32;
                let end = ::perpetua::kernel::resident::U32x4 { x: 1, y: known[3], z: known[4], w: next[1] };
                ::perpetua::prelude::atomic_store_explicit(&mut reports[home * 4 + 1], end, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
            }
        }
    };
}
