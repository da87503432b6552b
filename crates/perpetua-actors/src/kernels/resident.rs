//! The resident kernel of a handler: a block for each home. Takes packets from the host and from other homes, runs the handler, delivers
//! what it sent. Must not know the handler: the macro is given its state's type and the function that calls it.
//!
//! Each subgroup of the home watches one source, since loads of one subgroup wait for each other: one or several watch the host's ring
//! (the bus takes a microsecond to bring a slot; two that look at different times see a packet sooner), one watches the home's box, and where
//! devices reach each other's memory one more those for packets from other devices, in turn.
//! The first subgroup that sees packets takes the home's lock and handles them: its lanes run the handler side by side, each with a message to
//! another actor, or the first lanes run it together (a group). Eight lanes move one slot, which the bus carries as one access. Lanes
//! exchange values through the block's shared memory. Which fences that takes, and in which lanes they stand, `ring/README.md` argues.

/// The resident kernel `$name` of the handler that `$dispatch` calls, with states of type `$state`; `$group` says whether
/// several lanes run the handler together.
#[doc(hidden)]
#[macro_export]
macro_rules! __resident_kernel {
    ([$($vis:tt)*] $name:ident, [$($state:tt)+], $dispatch:ident, $group:literal, [$($arena:ident $block:ident)?]) => {
        #[doc(hidden)]
        #[allow(missing_docs, unreachable_pub, dead_code, unused_assignments, unused_labels, reason = "generated")]
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
            peers: &mut [::perpetua::kernel::resident::U32x4],
            links: &mut [u32],
            first_actor: u32,
            first_home: u32,
            actor_count: u32,
            home_count: u32,
            home_inverse: u32,
            ring_mask: u32,
            box_mask: u32,
            patience: u32,
            host_watchers: u32,
            time_offset: u64,
            run_limit: u64,
            group_size: u32,
            latencies_each: u32,
            on_fault: u32,
            send_patience: u64,
            devices: u32,
            own_device: u32,
            far_boxes: u32,
            far_homes: u32,
            link_words: u32,
            $($arena: &mut [u32],)?
        ) {
            // Packets that have come.
            let mail = ::perpetua::prelude::shared_array::<[u32; 896]>();
            // The lowest lane that wants an actor with this remainder.
            let claims = ::perpetua::prelude::shared_array::<[u32; 512]>();
            // How often each lane of a group has waited for the others.
            let phases = ::perpetua::prelude::shared_array::<[u32; 32]>();
            // What the home knows; only the lock's holder touches it. The numbers of the next packets of all sources are read without the
            // lock, and whether the home stays.
            let lock = ::perpetua::prelude::shared_array::<[u32; 2]>();
            let next = ::perpetua::prelude::shared_array::<[u32; 10]>();
            let stays = ::perpetua::prelude::shared_array::<[u32; 1]>();
            // Packets put out and taken out by the host, handlers run, faults, packets refused.
            let known = ::perpetua::prelude::shared_array::<[u32; 5]>();
            let stamps = ::perpetua::prelude::shared_array::<[u64; 1]>();
            let home = first_home as usize + ::perpetua::prelude::block_idx_x() as usize;
            let lane = ::perpetua::prelude::subgroup_lane();
            let below = (1u32 << lane) - 1;
            let part = (lane & 7) as usize;
            let leads = lane == 0;
            let watcher = ::perpetua::prelude::local_id_x() as u32 / 32;
            let words = home * 64;
            // Of the first slots of its rings, this lane's vector.
            let ring = home as u32 * (ring_mask + 1) * 8;
            let mut boxes = home as u32 * (box_mask + 1) * 8 + (lane & 7);
            let clears = ::perpetua::prelude::local_id_x() as usize;
            for i in 0..4 {
                claims[clears + 128 * i] = u32::MAX;
            }
            if clears == 0 {
                lock[0] = 0;
                lock[1] = 0;
                stays[0] = 1;
                ::perpetua::actors::kernels::parts::recall(homes, words, devices, next, known, stamps);
            }
            ::perpetua::prelude::sync_threads();
            let from_host = watcher < host_watchers;
            // One watches the boxes for packets from other devices, in turn. (With `&`: so no devices, which is bound, make it false, and its branches are gone.)
            let from_far = (devices != 0) & (watcher == host_watchers + 1);
            let mut peer = own_device;
            let mut source = if from_host { 0usize } else { 1usize };
            let mut link = 0u32;
            // Nobody else watches.
            let mut running = (watcher <= host_watchers) | from_far;
            // Slots that are looked at together: the bus has room for many only where many have come.
            let widest = if $group { 1u32 } else { 4u32 };
            let mut span = if from_host { 1u32 } else { widest };
            let mut polls = 0u32;
            let mut idle = 0u32;
            let mut ctx = ::perpetua::actors::Context::new(0, lane, if $group { group_size } else { 1 });
            while running {
                ::perpetua::prelude::converge();
                if from_far {
                    peer = ::perpetua::actors::kernels::parts::next_of(peer, own_device, devices);
                    source = 2 + peer as usize;
                    let its = own_device * far_boxes + peer * far_homes + home as u32;
                    boxes = its * (box_mask + 1) * 8 + (lane & 7);
                    link = peer * link_words + its * 8;
                }
                let number = ::perpetua::actors::kernels::parts::peek(&next, source);
                let mut slot = lane / 8;
                let looks = slot < span;
                if !looks {
                    slot = 0;
                }
                let mut vector = ::perpetua::kernel::resident::U32x4 { x: 0, y: 0, z: 0, w: 0 };
                if from_host {
                    vector = ::perpetua::actors::kernels::parts::look_at_host(ingress, ring + ((number + slot) & ring_mask) * 8 + (lane & 7));
                } else {
                    vector = ::perpetua::actors::kernels::parts::look(inbox, peers, from_far, boxes + ((number + slot) & box_mask) * 8);
                }
                polls += 1;
                ::perpetua::prelude::converge();
                let count = ::perpetua::actors::kernels::parts::whole_slots(
                    ::perpetua::prelude::subgroup_ballot(looks && vector.w == number + slot + 1)[0],
                );
                if count == 0 {
                    idle += 1;
                    if from_host {
                        span = 1;
                    }
                    if (polls & 1023) == 0 && watcher == 0 && leads {
                        ::perpetua::actors::kernels::parts::pulse(reports, home, polls, 0);
                    }
                    if idle > patience {
                        ::perpetua::prelude::nap(500);
                    }
                    running = ::perpetua::prelude::subgroup_any(::perpetua::actors::kernels::parts::peek(&stays, 0) != 0);
                    continue;
                }
                idle = 0;
                if from_host {
                    span = if count == span { (span * 2).min(widest) } else { 1 };
                }
                // One watcher at a time handles packets; another may have had these first.
                if leads {
                    ::perpetua::actors::kernels::parts::acquire(lock);
                }
                ::perpetua::prelude::converge();
                if ::perpetua::prelude::subgroup_any(::perpetua::actors::kernels::parts::peek(&next, source) != number) {
                    if leads {
                        ::perpetua::actors::kernels::parts::release(lock);
                    }
                    running = ::perpetua::prelude::subgroup_any(::perpetua::actors::kernels::parts::peek(&stays, 0) != 0);
                    continue;
                }
                // Even where the home is to leave: one that is told so again and again would never get to what others send it.
                let mut come = count;
                if looks && slot < count {
                    ::perpetua::actors::kernels::parts::post(mail, slot, part, &vector);
                }
                // There may be more: other homes are near.
                let mut more = count == 4 && !from_host;
                while ::perpetua::prelude::subgroup_any(more) {
                    let behind = number + come + slot;
                    vector = ::perpetua::actors::kernels::parts::look(inbox, peers, from_far, boxes + (behind & box_mask) * 8);
                    ::perpetua::prelude::converge();
                    let further = ::perpetua::actors::kernels::parts::whole_slots(
                        ::perpetua::prelude::subgroup_ballot(vector.w == behind + 1)[0],
                    );
                    if slot < further {
                        ::perpetua::actors::kernels::parts::post(mail, come + slot, part, &vector);
                    }
                    come += further;
                    more = further == 4 && come < 32;
                }
                let clock = ::perpetua::actors::kernels::parts::stamp_at(::perpetua::prelude::clock_nanos() + time_offset);
                ::perpetua::prelude::converge();
                if leads {
                    ::perpetua::actors::kernels::parts::poke(next, source, number + come);
                    // Their words are here: their tags were compared.
                    if !from_host {
                        ::perpetua::actors::kernels::parts::count_out(homes, links, from_far, words + 32, link, number + come);
                    }
                }
                let mut out = known[0];
                let mut taken_out = known[1];
                let mut handled = known[2];
                let mut faults = known[3];
                let mut refused = known[4];
                let mut stamp = stamps[0];
                // Packets that wait for their turn, by their place in the mail. Who finds no lower one for the same actor takes it.
                let mut waiting = u32::MAX >> (32 - come);
                while ::perpetua::prelude::subgroup_any(waiting != 0) {
                    let mut takes = ((waiting >> lane) & 1) != 0;
                    let at = if $group { 0usize } else { lane as usize * 28 };
                    let mut actor = first_actor;
                    let mut life = 0u32;
                    if takes || $group {
                        actor = mail[at];
                        // Early: it may be far away.
                        life = actors[actor as usize * 8];
                    }
                    let index = (actor - first_actor) as usize;
                    if ::perpetua::prelude::subgroup_any((waiting & (waiting - 1)) != 0) {
                        let claim = index & 511;
                        if takes {
                            ::perpetua::prelude::atomic_min_explicit(&mut claims[claim], lane, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Block);
                        }
                        ::perpetua::prelude::converge();
                        let first = takes && ::perpetua::actors::kernels::parts::peek(&claims, claim) == lane;
                        ::perpetua::prelude::converge();
                        if takes {
                            ::perpetua::actors::kernels::parts::poke(claims, claim, u32::MAX);
                        }
                        takes = first;
                    }
                    ::perpetua::prelude::converge();
                    let takers = ::perpetua::prelude::subgroup_ballot(takes)[0];
                    waiting &= !takers;
                    // What a lane knows of its packet and of what became of it: 0 it is done, else why it was not delivered.
                    let mut sender = 0u32;
                    let mut type_id = 0u32;
                    let mut correlation = 0u32;
                    let mut sent = 0u64;
                    let mut mark = 0u32;
                    let mut deadline = 0u32;
                    if takes || $group {
                        sender = mail[at + 1];
                        type_id = mail[at + 2];
                        correlation = mail[at + 3];
                        sent = mail[at + 4] as u64 | ((mail[at + 5] as u64) << 32);
                        mark = mail[at + 6];
                        deadline = mail[at + 7];
                    }
                    // A stamp for each packet, with room behind it for those of what its handler sends.
                    let mut begun = clock.max(stamp + 1);
                    if ::perpetua::prelude::subgroup_any(sent >= begun) {
                        begun = begun.max(::perpetua::prelude::subgroup_max(sent) + 1);
                    }
                    stamp = begun + (takers.count_ones() * 16) as u64;
                    if !$group {
                        begun += ((takers & below).count_ones() * 16) as u64;
                    }
                    let kind = mark & 255;
                    let mut reason = 0u32;
                    let mut fault = 0u32;
                    let mut entries = 0u32;
                    let mut replied = false;
                    let mut total = 0u32;
                    let mut answer = ::perpetua::actors::context::Answer::none();
                    let mut runs = false;
                    if takes {
                        if kind == 5 {
                            if type_id == 1 {
                                ::perpetua::actors::kernels::parts::poke(stays, 0, 0);
                            } else if type_id == 2 {
                                let behind = mail[at + 8] == 2 && mail[at + 9] != actors[actor as usize * 8 + 6];
                                actors[actor as usize * 8] = mail[at + 8] + behind as u32;
                            } else {
                                states[index] = first_states[0];
                            }
                        } else if life != 2 {
                            reason = 1;
                        } else if deadline != 0 && begun > sent + ((deadline as u64) << 12) {
                            reason = 2;
                        } else {
                            runs = true;
                            if on_fault == 0 {
                                // Behind the states: what each was before the last message to its actor.
                                states[actor_count as usize + index] = states[index];
                            }
                        }
                    }
                    if $group {
                        phases[lane as usize] = 0;
                        ::perpetua::prelude::converge();
                        runs = ::perpetua::prelude::subgroup_any(runs) && lane < group_size;
                    }
                    let until = ::perpetua::prelude::clock_nanos() + run_limit;
                    $(let mut $block = ::perpetua::actors::span::Block::of($arena, 0, 0, 0);)?
                    if runs {
                        ctx.begin(actor, sender, correlation, begun as u32, (begun >> 32) as u32);
                        ctx.of_message(sent as u32, (sent >> 32) as u32, mark);
                        $($block = ::perpetua::actors::span::Block::of($arena, mark, mail[at + 22], mail[at + 23]);)?
                        let payload = ::perpetua::actors::kernels::parts::payload(&mail, at);
                        'handled: {
                            answer = $dispatch(
                                &mut ctx,
                                &mut states[index],
                                type_id,
                                payload,
                                phases
                                $(, $arena, &mut $block)?
                            );
                        }
                        fault = ::perpetua::prelude::catch_fault(until);
                    }
                    if $group {
                        if runs {
                            // No lane waits for one that has ended.
                            ::perpetua::actors::kernels::parts::poke(phases, lane as usize, u32::MAX);
                        }
                        ::perpetua::prelude::converge();
                        fault = ::perpetua::prelude::subgroup_max(fault);
                        runs = runs && leads;
                    }
                    $(
                        if runs && fault != 0 {
                            // The block goes with the message, as it came.
                            $block.take_back($arena);
                        }
                    )?
                    // What this handler, or the sender of the packet, wrote into the block is ordered before what this lane stores from here on: that
                    // the block is free, or the packet that takes it along. The lanes of a group have converged.
                    if takes && ::perpetua::actors::kernels::parts::brings_block(mark) {
                        ::perpetua::prelude::thread_fence_system();
                    }
                    if runs {
                        entries = ctx.entries();
                        replied = ctx.has_replied() || answer.flags != 0;
                        if fault != 0 {
                            // What it did and sent has not happened.
                            entries = 0;
                            if on_fault == 0 {
                                states[index] = states[actor_count as usize + index];
                            } else if on_fault == 2 {
                                states[index] = first_states[0];
                            }
                            answer = ::perpetua::actors::context::Answer::none();
                            actors[actor as usize * 8] = 5;
                        } else if answer.known == 0 && kind != 2 && kind != 6 {
                            // An answer that the asker does not take as a message ends here.
                            reason = 3;
                        }
                        $(
                            // A block that went nowhere is the host's.
                            if $block.is_given() {
                                mark &= 0xff7f_ffff;
                            } else if $block.is_here() && fault == 0 && reason == 0 {
                                ::perpetua::prelude::atomic_store_explicit(&mut $arena[mail[at + 23] as usize + 2], 0, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::System);
                            }
                        )?
                    }
                    let answers = (answer.flags != 0) as u32;
                    if takes {
                        // The answer comes first, then what the handler sent, and at the end, where somebody must hear of it, what became
                        // of the packet.
                        let asked = kind == 1 && !replied || kind == 5 && correlation != 0;
                        let closes = asked || reason != 0 || fault != 0;
                        total = entries + answers + closes as u32;
                    }
                    ::perpetua::prelude::converge();
                    // A lane whose packet finds no room tries again while the others' are written: no packet waits for one behind it.
                    let mut turn = 0u32;
                    let mut until = 0u64;
                    let mut held = false;
                    while ::perpetua::prelude::subgroup_any(turn < total) {
                        let mut sends = turn < total;
                        let mut from = actor;
                        let mut note = 0u32;
                        let mut at_time = begun + 1 + turn as u64;
                        let mut entry = answer.entry(sender, correlation);
                        if sends && turn >= answers {
                            if turn < answers + entries {
                                entry = ctx.entry(turn - answers);
                            } else {
                                // The packet as it came, and what became of it: the fault, the reason, or just that it is done.
                                entry = ::perpetua::actors::kernels::parts::closing(&mail, at);
                                if fault + reason != 0 {
                                    // It may be delivered again, and is the same message.
                                    at_time = sent;
                                }
                                if fault != 0 {
                                    entry.flags = 4 | (mark & 0xffff_ff00);
                                    note = fault;
                                    from = sender;
                                } else if reason != 0 {
                                    entry.flags = 7 | (mark & 0xffff_ff00);
                                    note = reason | (kind << 8);
                                    from = sender;
                                }
                            }
                        }
                        // To a home's box, or to the host.
                        let mut place = ::perpetua::actors::kernels::parts::Place { reason: 5, slot: 0, tag: 0 };
                        let what = entry.flags & 255;
                        let mut their = u32::MAX;
                        let posts = sends && entry.destination != u32::MAX && (what == 0 || what == 2);
                        if posts {
                            their = ::perpetua::actors::kernels::parts::home_of(entry.destination, first_actor, actor_count, first_home, home_count, home_inverse, directory);
                        }
                        let goes_far = (devices != 0) & (their >> 31 != 0) & (their != u32::MAX);
                        if posts {
                            if goes_far {
                                place = ::perpetua::actors::kernels::parts::place_far(links, own_device * link_words, their, box_mask, until != 0, held);
                            } else if their != u32::MAX {
                                place = ::perpetua::actors::kernels::parts::place::<false>(homes, their as usize * 64 + 32, their, box_mask, until != 0, held);
                            }
                            if place.reason == 4 && !held {
                                let waits = their != home as u32 // Nobody makes room in its own box meanwhile.
                                    && ::perpetua::actors::kernels::parts::may_wait(orders, reports, home as u32, &mut until, send_patience);
                                sends = !waits;
                                held = sends;
                                if held {
                                    // The host delivers it, and what comes behind it; until then the actor handles nothing.
                                    actors[actor as usize * 8] = 3;
                                }
                            }
                            if sends && place.reason != 0 {
                                entry.flags = 7 | (entry.flags & 0xffff_ff00);
                                note = place.reason | (what << 8);
                                if place.reason == 4 { ::perpetua::prelude::atomic_add_explicit(&mut actors[actor as usize * 8 + 6], 1, ::perpetua::kernel::atomic::Ordering::Relaxed, ::perpetua::kernel::atomic::Scope::Block); }
                            }
                        }
                        let boxed = place.reason == 0;
                        ::perpetua::prelude::converge();
                        let to_host = ::perpetua::prelude::subgroup_ballot(sends && !boxed)[0];
                        if to_host != 0 {
                            refused += ::perpetua::prelude::subgroup_ballot(note != 0 && turn < answers + entries)[0].count_ones();
                            let more = to_host.count_ones();
                            while out + more - taken_out > ring_mask + 1 {
                                taken_out = ::perpetua::prelude::atomic_load_explicit(&orders[home * 16], ::perpetua::kernel::atomic::Ordering::Acquire, ::perpetua::kernel::atomic::Scope::System);
                            }
                            if !boxed {
                                let number = out + (to_host & below).count_ones();
                                place.slot = ring + (number & ring_mask) * 8;
                                place.tag = number + 1;
                            }
                            out += more;
                        }
                        if sends {
                            let packet = ::perpetua::actors::kernels::parts::packet_of(&entry, from, note, at_time, place.tag);
                            if !boxed {
                                ::perpetua::actors::kernels::parts::put_away(egress, place.slot as usize, &packet);
                            } else if goes_far {
                                ::perpetua::actors::kernels::parts::put_away(peers, place.slot as usize, &packet);
                            } else {
                                ::perpetua::actors::kernels::parts::put_here(inbox, place.slot as usize, &packet);
                            }
                            turn += 1;
                            until = 0;
                        }
                    }
                    // What nobody waits for comes behind the delivery.
                    if runs {
                        let mut refusals = if fault == 0 { ctx.refused() } else { 0 };
                        if fault + reason + answer.known == 0 {
                            // A reply that nobody takes.
                            refusals += 1;
                        }
                        ::perpetua::actors::kernels::parts::count_sends(actors, actor, answers + entries, refusals);
                        let row = if latencies_each != 0 { index } else { home - first_home as usize };
                        ::perpetua::actors::kernels::parts::count_run(actors, actor, answer.known, latencies, row, (begun - sent) >> 12);
                    }
                    ::perpetua::prelude::converge();
                    handled += ::perpetua::prelude::subgroup_ballot(runs)[0].count_ones();
                    faults += ::perpetua::prelude::subgroup_ballot(runs && fault != 0)[0].count_ones();
                }
                // Nobody may still read what the next one with the lock writes.
                ::perpetua::prelude::converge();
                if leads {
                    known[0] = out;
                    known[1] = taken_out;
                    known[2] = handled;
                    known[3] = faults;
                    known[4] = refused;
                    stamps[0] = stamp;
                    if !from_host {
                        ::perpetua::actors::kernels::parts::count_out(homes, links, from_far, words + 35, link + 3, number + come);
                    }
                    let beat = ::perpetua::kernel::resident::U32x4 {
                        x: ::perpetua::actors::kernels::parts::peek(&next, 0),
                        y: handled,
                        z: out,
                        w: polls,
                    };
                    ::perpetua::actors::kernels::parts::tell_host(reports, home * 4, beat);
                    ::perpetua::actors::kernels::parts::release(lock);
                }
                running = ::perpetua::prelude::subgroup_any(::perpetua::actors::kernels::parts::peek(&stays, 0) != 0);
            }
            ::perpetua::prelude::sync_threads();
            if clears == 0 {
                ::perpetua::actors::kernels::parts::keep(homes, words, devices, next, known, stamps);
                let end = ::perpetua::kernel::resident::U32x4 { x: 1, y: known[3], z: known[4], w: next[1] };
                ::perpetua::actors::kernels::parts::tell_host(reports, home * 4 + 1, end);
            }
        }
    };
}
