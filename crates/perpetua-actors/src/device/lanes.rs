//! The kernel that stays on a device for handlers whose runs are independent: lanes of a subgroup run them side by side, one message
//! each. Takes packets from the host and from other homes, delivers what handlers sent. Must not know the handler: the macro is given its
//! state's type and the function that calls it. Handlers that several lanes run together have `resident`.
//!
//! A home has subgroups that watch a source each, one or two the host's ring and one the home's box, and one that works. A watcher takes
//! up to four packets that are there, eight lanes a slot, into the home's mail, from where the worker takes all that are next in line, up
//! to sixteen of each source, unless two are for one actor: the second one waits for the next round. So messages of one sender to one
//! actor keep their order. What the lanes send leaves four packets at a time, eight lanes a slot.
//!
//! Only the worker touches actors, and only watchers the numbers of what comes: tags of the mail's slots and the count of what is done are
//! all that they tell each other, by workgroup memory.

/// The resident kernel `$name` of the handler that `$dispatch` calls, with states of type `$state`.
#[doc(hidden)]
#[macro_export]
macro_rules! __resident_lanes_kernel {
    ([$($vis:tt)*] $name:ident, [$($state:tt)+], $dispatch:ident, [$($arena:ident $block:ident)?]) => {
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
            _group_size: u32,
            latencies_each: u32,
            $($arena: &mut [u32],)?
        ) {
            // Packets that have come: 32 slots for the host's, 32 for those of the box, 25 words apart, so that lanes that read one word
            // each of their slots find them in different banks.
            let mail = ::perpetua::prelude::workgroup_array::<[u32; 1600]>();
            // The number of each slot's packet, plus one.
            let tags = ::perpetua::prelude::workgroup_array::<[u32; 64]>();
            // Packets that go out: words, way, slot, tag.
            let post = ::perpetua::prelude::workgroup_array::<[u32; 1056]>();
            // The lowest lane that wants an actor with this remainder.
            let claims = ::perpetua::prelude::workgroup_array::<[u32; 64]>();
            // Of both sources: numbers of the next packet to be fetched, and of the next to be handled.
            let next = ::perpetua::prelude::workgroup_array::<[u32; 2]>();
            let done = ::perpetua::prelude::workgroup_array::<[u32; 2]>();
            // Whether the home stays; watchers that have left.
            let stays = ::perpetua::prelude::workgroup_array::<[u32; 1]>();
            let left = ::perpetua::prelude::workgroup_array::<[u32; 1]>();
            let phases = ::perpetua::prelude::workgroup_array::<[u32; 32]>();
            let home = first_home as usize + ::perpetua::prelude::block_idx_x() as usize;
            let lane = ::perpetua::prelude::subgroup_lane();
            let below = (1u32 << lane) - 1;
            let part = (lane & 7) as usize;
            let leads = lane == 0;
            let own = ::perpetua::prelude::local_id_x() as u32 / 32;
            let words = home * 64;
            let ring = home * (ring_mask as usize + 1);
            let boxes = home * (box_mask as usize + 1);
            let clears = ::perpetua::prelude::local_id_x() as usize;
            if clears < 64 {
                tags[clears] = 0;
                claims[clears] = u32::MAX;
            }
            if clears == 0 {
                stays[0] = 1;
                left[0] = 0;
                next[0] = homes[words];
                next[1] = ::perpetua::prelude::atomic_load(&homes[words + 32]);
                done[0] = next[0];
                done[1] = next[1];
            }
            ::perpetua::prelude::sync_threads();
            let works = own == 3;
            let from_host = own < host_watchers;
            let source = if from_host { 0usize } else { 1usize };
            let mut running = works || own <= host_watchers;
            // A watcher's slots at once: the bus has room for many only where many have come.
            let mut span = if from_host { 1u32 } else { 4 };
            let mut idle = 0u32;
            let mut rounds = 0u32;
            // What the worker knows: packets handled of both sources, put out, taken out by the host, and what it counts.
            let mut host_done = ::perpetua::prelude::atomic_load_explicit(&done[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
            let mut box_done = ::perpetua::prelude::atomic_load_explicit(&done[1], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
            let mut out = homes[words + 1];
            let mut taken_out = out;
            let mut handled = homes[words + 2];
            let mut faults = homes[words + 3];
            let mut refused = homes[words + 4];
            let mut stamp = homes[words + 5] as u64 | ((homes[words + 6] as u64) << 32);
            let mut ctx = ::perpetua::actors::Context::new(0, 0, 1);
            while running {
                ::perpetua::prelude::converge();
                if !works {
                    let number = ::perpetua::prelude::atomic_load_explicit(&next[source], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    let ahead = number - ::perpetua::prelude::atomic_load_explicit(&done[source], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    let mut at = lane / 8;
                    if at >= span {
                        at = 0;
                    }
                    let mut mine = ::perpetua::kernel::resident::U32x4 { x: 0, y: 0, z: 0, w: number + at };
                    if ahead <= 28 {
                        if from_host {
                            mine = ::perpetua::prelude::atomic_load_explicit(
                                &ingress[(ring + ((number + at) & ring_mask) as usize) * 8 + part],
                                ::perpetua::kernel::atomic::Ordering::Relaxed,
                                ::perpetua::kernel::atomic::Scope::System,
                            );
                        } else {
                            mine = ::perpetua::prelude::atomic_load_explicit(
                                &inbox[(boxes + ((number + at) & box_mask) as usize) * 8 + part],
                                ::perpetua::kernel::atomic::Ordering::Relaxed,
                                ::perpetua::kernel::atomic::Scope::Device,
                            );
                        }
                    }
                    ::perpetua::prelude::converge();
                    // Slots that are whole, from the first on.
                    let whole = ::perpetua::prelude::subgroup_ballot(at == lane / 8 && mine.w == number + at + 1)[0];
                    let mut count = 0u32;
                    while count < 4 && ((whole >> (count * 8)) & 255) == 255 {
                        count += 1;
                    }
                    let mut won = false;
                    if leads && count > 0 {
                        // Another one may watch the same source.
                        won = ::perpetua::prelude::atomic_compare_exchange_explicit(&mut next[source], number, number + count, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) == number;
                    }
                    ::perpetua::prelude::converge();
                    if ::perpetua::prelude::subgroup_any(won) {
                        idle = 0;
                        // Pairs with the worker's, before it told that these slots are done with.
                        ::perpetua::prelude::thread_fence_block();
                        if at == lane / 8 && at < count {
                            let slot = source * 32 + ((number + at) & 31) as usize;
                            mail[slot * 25 + part * 3] = mine.x;
                            mail[slot * 25 + part * 3 + 1] = mine.y;
                            mail[slot * 25 + part * 3 + 2] = mine.z;
                        }
                        ::perpetua::prelude::converge();
                        // Pairs with the worker's, behind its look at the tags.
                        ::perpetua::prelude::thread_fence_block();
                        if part == 0 && at == lane / 8 && at < count {
                            let slot = source * 32 + ((number + at) & 31) as usize;
                            ::perpetua::prelude::atomic_store_explicit(&mut tags[slot], number + at + 1, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                        }
                        if leads && !from_host {
                            // Their words are here: their tags were compared.
                            ::perpetua::prelude::atomic_store(&mut homes[words + 32], number + count);
                        }
                        if from_host {
                            span = if count == span { (span * 2).min(4) } else { 1 };
                        }
                    } else {
                        idle += 1;
                        if from_host {
                            span = 1;
                        }
                        if idle > patience {
                            ::perpetua::prelude::nap(500);
                        }
                    }
                    running = ::perpetua::prelude::atomic_load_explicit(&stays[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) != 0;
                    if !running {
                        ::perpetua::prelude::thread_fence_block();
                        ::perpetua::prelude::converge();
                        if leads {
                            ::perpetua::prelude::atomic_add_explicit(&mut left[0], 1, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                        }
                    }
                    continue;
                }
                // The worker. Sources take turns at having the lower lanes, which go first where two packets are for one actor.
                let gone = ::perpetua::prelude::atomic_load_explicit(&left[0], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) == host_watchers + 1;
                if gone {
                    ::perpetua::prelude::thread_fence_block();
                }
                rounds += 1;
                let turned = rounds & 1;
                let from_box = ((lane / 16) ^ turned) != 0;
                let number = if from_box { box_done } else { host_done } + (lane & 15);
                let slot = (number & 31) as usize + if from_box { 32 } else { 0 };
                let there = ::perpetua::prelude::subgroup_ballot(::perpetua::prelude::atomic_load_explicit(&tags[slot], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) == number + 1)[0];
                // Packets that are next in line, of the source of the lower lanes and of the other one.
                let mut low = (!there | 0x1_0000).trailing_zeros();
                let mut high = (!(there >> 16) | 0x1_0000).trailing_zeros();
                let seen = ::perpetua::prelude::clock_nanos();
                if low + high == 0 {
                    idle += 1;
                    if leads && (rounds & 0x3fff) == 0 {
                        let beat = ::perpetua::kernel::resident::U32x4 { x: host_done, y: handled, z: out, w: rounds };
                        ::perpetua::prelude::atomic_store_explicit(&mut reports[home * 4], beat, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                    }
                    if idle > patience {
                        ::perpetua::prelude::nap(500);
                    }
                    // Nothing comes any more, and all is done that came.
                    running = !gone;
                    continue;
                }
                idle = 0;
                // Pairs with the watchers', before their tags.
                ::perpetua::prelude::thread_fence_block();
                let at = slot * 25;
                let mut mine = (lane & 15) < if lane < 16 { low } else { high };
                let mut actor = first_actor;
                if mine {
                    actor = mail[at];
                }
                let index = (actor - first_actor) as usize;
                if low + high > 1 {
                    let claim = index & 63;
                    if mine {
                        ::perpetua::prelude::atomic_min_explicit(&mut claims[claim], lane, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    }
                    ::perpetua::prelude::converge();
                    let waits = mine && ::perpetua::prelude::atomic_load_explicit(&claims[claim], ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup) != lane;
                    let waiting = ::perpetua::prelude::subgroup_ballot(waits)[0];
                    ::perpetua::prelude::converge();
                    if mine {
                        ::perpetua::prelude::atomic_store_explicit(&mut claims[claim], u32::MAX, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    }
                    // Nobody overtakes who waits.
                    low = low.min((waiting | 0x1_0000).trailing_zeros());
                    high = high.min(((waiting >> 16) | 0x1_0000).trailing_zeros());
                    mine = (lane & 15) < if lane < 16 { low } else { high };
                }
                // What a lane knows of its packet and of what became of it: 0 it is done, else why it was not delivered.
                let mut sender = 0u32;
                let mut type_id = 0u32;
                let mut correlation = 0u32;
                let mut sent = 0u64;
                let mut mark = 0u32;
                let mut deadline = 0u32;
                if mine {
                    sender = mail[at + 1];
                    type_id = mail[at + 2];
                    correlation = mail[at + 3];
                    sent = mail[at + 4] as u64 | ((mail[at + 5] as u64) << 32);
                    mark = mail[at + 6];
                    deadline = mail[at + 7];
                }
                // A stamp for each packet, with room behind it for those of what its handler sends.
                let clock = (((seen + time_offset) as f64 * 0.001) as u64) << 12;
                let mut first = clock.max(stamp + 1);
                if ::perpetua::prelude::subgroup_any(sent >= first) {
                    first = first.max(::perpetua::prelude::subgroup_max(sent) + 1);
                }
                let takers = ::perpetua::prelude::subgroup_ballot(mine)[0];
                let begun = first + ((takers & below).count_ones() * 16) as u64;
                stamp = first + (takers.count_ones() * 16) as u64;
                let kind = mark & 255;
                let mut reason = 0u32;
                let mut fault = 0u32;
                let mut entries = 0u32;
                let mut total = 0u32;
                let mut answer = ::perpetua::actors::context::Answer::none();
                let mut runs = false;
                if mine {
                    if kind == 5 {
                        if type_id == 1 {
                            ::perpetua::prelude::atomic_store_explicit(&mut stays[0], 0, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                        } else if type_id == 2 {
                            actors[actor as usize * 4] = mail[at + 8];
                        } else {
                            states[index] = first_states[0];
                            actors[actor as usize * 4] = 2;
                        }
                    } else if actors[actor as usize * 4] != 2 {
                        reason = 1;
                    } else if deadline != 0 && begun > sent + ((deadline as u64) << 12) {
                        reason = 2;
                    } else {
                        runs = true;
                    }
                }
                let until = seen + run_limit;
                $(let mut $block = ::perpetua::actors::span::Block::of($arena, 0, 0, 0);)?
                if runs {
                    ctx.begin(actor, sender, correlation, begun as u32, (begun >> 32) as u32);
                    $(
                        // What was written into the block before the packet was sent is read behind this.
                        ::perpetua::prelude::thread_fence_system();
                        $block = ::perpetua::actors::span::Block::of($arena, mark, mail[at + 22], mail[at + 23]);
                    )?
                    'handled: {
                        answer = $dispatch(
                            &mut ctx,
                            &mut states[index],
                            type_id,
                            [
                                mail[at + 8], mail[at + 9], mail[at + 10], mail[at + 11],
                                mail[at + 12], mail[at + 13], mail[at + 14], mail[at + 15],
                                mail[at + 16], mail[at + 17], mail[at + 18], mail[at + 19],
                                mail[at + 20], mail[at + 21], mail[at + 22], mail[at + 23],
                            ],
                            phases
                            $(, $arena, &mut $block)?
                        );
                    }
                    fault = ::perpetua::prelude::catch_fault(until);
                }
                if runs {
                    if fault != 0 {
                        answer = ::perpetua::actors::context::Answer::none();
                        actors[actor as usize * 4] = 5;
                        actors[actor as usize * 4 + 2] += 1;
                    } else if answer.known == 0 && kind != 2 && kind != 6 {
                        // An answer that the asker does not take as a message ends here.
                        reason = 3;
                    }
                    $(
                        // What was written into the block is there before anybody is told. Then a block that went nowhere is the
                        // host's.
                        ::perpetua::prelude::thread_fence_system();
                        if $block.is_given() {
                            mark &= 0xff7f_ffff;
                        } else if $block.is_here() && fault == 0 && reason == 0 {
                            ::perpetua::prelude::atomic_store_explicit(&mut $arena[mail[at + 23] as usize + 2], 0, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                        }
                    )?
                    entries = ctx.entries();
                }
                let answers = (answer.flags != 0) as u32;
                if mine {
                    // The answer comes first, then what the handler sent, and at the end, where somebody must hear of it, what became
                    // of the packet.
                    let asked = kind == 1 && entries + answer.flags == 0 || kind == 5 && correlation != 0;
                    let closes = asked || reason != 0 || fault != 0;
                    total = entries + answers + closes as u32;
                }
                ::perpetua::prelude::converge();
                let mut turn = 0u32;
                while ::perpetua::prelude::subgroup_any(turn < total) {
                    let sends = turn < total;
                    let sending = ::perpetua::prelude::subgroup_ballot(sends)[0];
                    let place = (sending & below).count_ones() as usize * 33;
                    let mut to = actor;
                    let mut from = actor;
                    let mut flags = 0u32;
                    let mut note = 0u32;
                    if sends {
                        if turn < answers {
                            to = sender;
                            flags = answer.flags;
                            post[place + 2] = answer.type_id;
                            post[place + 3] = correlation;
                            post[place + 8] = answer.payload[0];
                            post[place + 9] = answer.payload[1];
                            post[place + 10] = answer.payload[2];
                            post[place + 11] = answer.payload[3];
                            post[place + 12] = answer.payload[4];
                            post[place + 13] = answer.payload[5];
                            post[place + 14] = answer.payload[6];
                            post[place + 15] = answer.payload[7];
                            post[place + 16] = answer.payload[8];
                            post[place + 17] = answer.payload[9];
                            post[place + 18] = answer.payload[10];
                            post[place + 19] = answer.payload[11];
                            post[place + 20] = answer.payload[12];
                            post[place + 21] = answer.payload[13];
                            post[place + 22] = answer.payload[14];
                            post[place + 23] = answer.payload[15];
                        } else if turn < answers + entries {
                            let entry = turn - answers;
                            to = ctx.outbox_word(entry, 0);
                            flags = ctx.outbox_word(entry, 3);
                            post[place + 2] = ctx.outbox_word(entry, 1);
                            post[place + 3] = ctx.outbox_word(entry, 2);
                            let mut word = 0usize;
                            while word < 16 {
                                post[place + 8 + word] = ctx.outbox_word(entry, 4 + word as u32);
                                word += 1;
                            }
                        } else {
                            // The packet as it came, and what became of it: the fault, the reason, or just that it is done.
                            post[place + 2] = type_id;
                            post[place + 3] = correlation;
                            let mut word = 8usize;
                            while word < 24 {
                                post[place + word] = mail[at + word];
                                word += 1;
                            }
                            from = sender;
                            if fault != 0 {
                                flags = 4 | (mark & 0xffff_ff00);
                                note = fault;
                            } else if reason != 0 {
                                flags = 7 | (mark & 0xffff_ff00);
                                note = reason;
                            } else {
                                flags = 6;
                                from = actor;
                            }
                        }
                    }
                    // To the host, or to a home's box.
                    let mut way = 1u32;
                    let mut place_out = 0u32;
                    let mut tag = 0u32;
                    let what = flags & 255;
                    if sends && to != u32::MAX && (what == 0 || what == 2) {
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
                                    place_out = their_home * (box_mask + 1) + (ticket & box_mask);
                                    tag = ticket + 1;
                                    way = 2;
                                    why = 0;
                                } else {
                                    ::perpetua::prelude::atomic_sub(&mut homes[their * 64 + 34], 1);
                                    // Nobody else takes packets out of its own mail.
                                    tries = if their == home { 100_000 } else { tries + 1 };
                                }
                            }
                        }
                        if why != 0 {
                            flags = 7 | (flags & 0xffff_ff00);
                            note = why;
                        }
                    }
                    ::perpetua::prelude::converge();
                    refused += ::perpetua::prelude::subgroup_ballot(sends && note != 0 && turn < answers + entries)[0].count_ones();
                    let to_host = ::perpetua::prelude::subgroup_ballot(sends && way == 1)[0];
                    let more = to_host.count_ones();
                    while out + more - taken_out > ring_mask + 1 {
                        taken_out = ::perpetua::prelude::atomic_load_explicit(&orders[home * 16], ::perpetua::kernel::atomic::Ordering::Acquire, ::perpetua::kernel::atomic::Scope::System);
                    }
                    if sends && way == 1 {
                        let number = out + (to_host & below).count_ones();
                        place_out = number & ring_mask;
                        tag = number + 1;
                    }
                    out += more;
                    if sends {
                        let stamped = begun + 1 + turn as u64;
                        post[place] = to;
                        post[place + 1] = from;
                        post[place + 4] = stamped as u32;
                        post[place + 5] = (stamped >> 32) as u32;
                        post[place + 6] = flags;
                        post[place + 7] = note;
                        post[place + 24] = way;
                        post[place + 25] = place_out;
                        post[place + 26] = tag;
                    }
                    ::perpetua::prelude::converge();
                    let packets = sending.count_ones();
                    let mut packet = lane / 8;
                    while packet < packets {
                        let base = packet as usize * 33;
                        let vector = ::perpetua::kernel::resident::U32x4 {
                            x: post[base + part * 3],
                            y: post[base + part * 3 + 1],
                            z: post[base + part * 3 + 2],
                            w: post[base + 26],
                        };
                        let to_slot = post[base + 25] as usize;
                        if post[base + 24] == 1 {
                            ::perpetua::prelude::atomic_store_explicit(&mut egress[(ring + to_slot) * 8 + part], vector, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                        } else {
                            ::perpetua::prelude::atomic_store_explicit(&mut inbox[to_slot * 8 + part], vector, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Device);
                        }
                        packet += 4;
                    }
                    ::perpetua::prelude::converge();
                    turn += 1;
                }
                // What nobody waits for comes behind the delivery.
                if runs {
                    if answer.known != 0 {
                        actors[actor as usize * 4 + 1] += 1;
                    }
                    // How long the message was on its way, in microseconds: four buckets for each power of two.
                    let waited = (begun - sent) >> 12;
                    let short = waited.min(0xff_ffff) as u32;
                    let power = 29 - (short | 4).leading_zeros();
                    let bucket = (power * 4 + (short >> power)) as usize;
                    let row = if latencies_each != 0 { index } else { home - first_home as usize };
                    ::perpetua::prelude::atomic_add_explicit(&mut latencies[row * 96 + bucket], 1, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Device);
                }
                handled += ::perpetua::prelude::subgroup_ballot(runs)[0].count_ones();
                faults += ::perpetua::prelude::subgroup_ballot(fault != 0)[0].count_ones();
                host_done += if turned == 0 { low } else { high };
                box_done += if turned == 0 { high } else { low };
                ::perpetua::prelude::converge();
                if leads {
                    // What was read of the mail is read: its slots may be filled again. Pairs with the watchers', before they do.
                    ::perpetua::prelude::thread_fence_block();
                    ::perpetua::prelude::atomic_store_explicit(&mut done[0], host_done, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    ::perpetua::prelude::atomic_store_explicit(&mut done[1], box_done, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Workgroup);
                    let beat = ::perpetua::kernel::resident::U32x4 { x: host_done, y: handled, z: out, w: rounds };
                    ::perpetua::prelude::atomic_store_explicit(&mut reports[home * 4], beat, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                }
            }
            ::perpetua::prelude::sync_threads();
            if works && leads {
                homes[words] = host_done;
                homes[words + 1] = out;
                homes[words + 2] = handled;
                homes[words + 3] = faults;
                homes[words + 4] = refused;
                homes[words + 5] = stamp as u32;
                homes[words + 6] = (stamp >> 32) as u32;
                let end = ::perpetua::kernel::resident::U32x4 { x: 1, y: faults, z: refused, w: box_done };
                ::perpetua::prelude::atomic_store_explicit(&mut reports[home * 4 + 1], end, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
            }
        }
    };
}
