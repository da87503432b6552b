//! Handlers for groups of lanes: however many lanes there are, the answers are the same. And what the actors of one launch are told
//! together.

use perpetua::actors::ActorState::*;
use perpetua::actors::{ActorError, Context, LaunchOptions, ring_kernel};
use perpetua::device::future::block_on;
use perpetua::prelude::*;

use super::{Add, launch, message, runtimes};

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Table {
    numbers: [u32; 100],
    partial: [u32; 32],
}

/// Adds up the table, however many lanes there are, each number times the message's place.
#[ring_kernel(group)]
fn add_up(ctx: &mut Context, state: &mut Table, message: Add) -> Add {
    let own = ctx.thread_index();
    let mut sum = 0;
    let mut at = own;
    while at < 100 {
        sum += state.numbers[at as usize] * message.place;
        at += ctx.group_size();
    }
    state.partial[own as usize] = sum;
    ctx.sync();
    let mut all = 0;
    for lane in 0..ctx.group_size() {
        all += state.partial[lane as usize];
    }
    Add {
        place: all,
        ..message
    }
}

pub(crate) fn a_group_of_lanes_does_what_one_does() {
    let mut table = Table {
        numbers: [0; 100],
        partial: [0; 32],
    };
    (3u32..).zip(&mut table.numbers).for_each(|(i, n)| *n = i);
    for runtime in runtimes() {
        let options = LaunchOptions::new(add_up::handler())
            .with_state(table)
            .with_block_size(256);
        let adder = runtime.launch_blocking("adder", options).unwrap();
        for i in 0..20 {
            let sums: Add = adder.ask_blocking(&message(i)).unwrap();
            assert_eq!(sums.place, (3..103).sum::<u32>() * message(i).place);
        }
        assert!(runtime.shutdown_blocking().unwrap().drained);
    }
}

pub(crate) fn what_many_are_told_is_done_by_all_who_can() {
    for runtime in runtimes() {
        let all = launch(&runtime, "many", LaunchOptions::default().with_actors(4));
        block_on(async {
            let second = all.actor(1)?;
            second.deactivate().await?;
            let outcome = all.deactivate().await;
            match &outcome {
                Err(ActorError::Several {
                    actors: 4, failed, ..
                }) if failed.len() == 1 => {}
                other => panic!("{other:?}"),
            }
            let error = outcome.unwrap_err().to_string();
            let expected = "1 of 4 actors of `many` could not, the others did: `many[1]` is Deactivated";
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(all.states(), [Deactivated; 4]);
            all.activate().await?;
            all.wait_for(Active).await?;

            for i in 0..100 {
                all.actor(i % 4)?.send_when_room(&message(i)).await?;
            }
            runtime.idle().await;
            // A device counts a message behind its answer: the states are exact.
            let handled: Vec<u32> = (0..4)
                .map(|i| Ok(all.actor(i)?.read_state::<super::State>()?.count))
                .collect::<Result<_, ActorError>>()?;
            assert_eq!(handled, [25; 4]);

            second.terminate().await?;
            assert_eq!(all.states(), [Active, Terminated, Active, Active]);
            let error = all.wait_for(Deactivated).await.unwrap_err().to_string();
            assert!(error.contains("`many[1]` is Terminated"), "{error}");
            all.terminate().await.unwrap_err();
            assert_eq!(all.states(), [Terminated; 4]);
            Ok::<(), ActorError>(())
        })
        .unwrap();
        assert!(runtime.shutdown_blocking().unwrap().drained);
    }
}
