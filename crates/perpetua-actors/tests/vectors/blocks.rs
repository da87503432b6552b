//! Where blocks are while messages wait, and that none is left behind.

use super::*;

pub(super) fn blocks_are_freed_wherever_messages_end() {
    for builder in [builder(), engines::other(builder())] {
        let runtime = builder
            .dead_letters(2)
            .arena_bytes(64 << 10)
            .build_blocking()
            .unwrap();
        let options = LaunchOptions::new(scale::handler())
            .with_actors(2)
            .with_queue_capacity(8)
            .without_auto_activate();
        let all = runtime.launch_blocking("scale", options).unwrap();
        let (one, other) = (all.actor(0).unwrap(), all.actor(1).unwrap());
        let large = message(1000);
        let mut taken = 0;
        // Full mailboxes take nothing.
        while one.send(&large).is_ok() {
            taken += 1;
        }
        assert_eq!((taken, runtime.arena().blocks), (8, 8));
        assert!(matches!(one.send(&large), Err(ActorError::Full { .. })));
        assert_eq!(runtime.arena().blocks, 8);
        // Nor does a full arena.
        let error = other.send(&message(16_000)).unwrap_err();
        assert!(matches!(error, ActorError::ArenaFull { .. }), "{error}");
        assert!(error.to_string().contains("arena_bytes"), "{error}");
        let whole = block_on(other.send_when_room(&message(20_000))).unwrap_err();
        assert!(matches!(whole, ActorError::ArenaFull { .. }), "{whole}");
        // Nobody waits for this one's answer any more: a dead letter, with its block.
        let late = other.ask_blocking_timeout::<_, Scaled>(&message(3), Duration::from_millis(5));
        assert!(matches!(late, Err(ActorError::Timeout { .. })));
        // These find nobody who takes vectors of a type that is not theirs, and are more than the letters that are kept.
        block_on(all.activate()).unwrap();
        eventually("all are handled", || all.metrics().messages_processed == 9);
        assert_eq!(runtime.arena().blocks, 9);
        for _ in 0..8 {
            drop(
                one.receive_blocking::<Borrowed<Scaled>>(Duration::from_secs(20))
                    .unwrap(),
            );
        }
        eventually("the late answer", || runtime.dead_letters().counts().total() == 1);
        let letters = runtime.dead_letters().letters();
        assert_eq!((letters.len(), letters[0].reason), (1, DeadReason::Late));
        runtime.dead_letters().take(letters[0].number).unwrap();
        // Of the wrong type, it is gone.
        other.send(&message(3)).unwrap();
        let wrong = other.receive_blocking::<Sent>(Duration::from_secs(20));
        assert!(matches!(wrong, Err(ActorError::WrongReply { .. })));
        empty(&runtime);
        for index in [5, 6, 7, 8] {
            let values = vec![0; 5];
            let bad = one.ask_blocking::<_, Sent>(&Poke { index, values });
            assert!(matches!(bad, Err(ActorError::Faulted { .. })), "{bad:?}");
            block_on(one.restart()).unwrap();
        }
        // The store holds two.
        assert_eq!(runtime.arena().blocks, 2);
        // Sent on to nobody, and to one that is gone; two letters more, so the old two are out.
        let nobody = Relay {
            next: 77,
            hops: 1,
            values: vec![1; 10],
        };
        one.send(&nobody).unwrap();
        eventually("nobody is there", || runtime.dead_letters().counts().total() == 6);
        block_on(other.deactivate()).unwrap();
        other.send(&large).unwrap();
        block_on(other.terminate()).unwrap();
        assert_eq!(runtime.dead_letters().counts().of(DeadReason::Terminated), 1);
        assert_eq!(runtime.arena().blocks, 2);
        assert!(other.send(&large).is_err());
        assert_eq!(runtime.arena().blocks, 2);
        // What waits when all ends.
        block_on(one.deactivate()).unwrap();
        one.send(&large).unwrap();
        runtime.shutdown_blocking().unwrap();
        assert_eq!(runtime.arena().blocks, 2);
        while let Some(letter) = runtime.dead_letters().letters().first() {
            runtime.dead_letters().take(letter.number).unwrap();
        }
        assert_eq!(runtime.arena().blocks, 0);
    }
}

pub(super) fn checkpoints_hold_vectors_that_wait() {
    let path = engines::file("perpetua-vectors");
    for (i, builder) in [builder(), engines::other(builder())].into_iter().enumerate() {
        let path = path.with_extension(i.to_string());
        let runtime = builder.clone().build_blocking().unwrap();
        let all = launch(&runtime, 2);
        let (one, other) = (all.actor(0).unwrap(), all.actor(1).unwrap());
        // One waits for the host to receive it, two for their actor.
        one.send(&message(50)).unwrap();
        eventually("it is handled", || one.metrics().messages_processed == 1);
        block_on(other.deactivate()).unwrap();
        other.send(&message(7)).unwrap();
        other.send(&message(300)).unwrap();
        eventually("it is there", || runtime.arena().blocks == 3);
        runtime.checkpoint_blocking(&path).unwrap();
        drop((runtime, all, one, other));

        let small = builder.clone().arena_bytes(1024).build_blocking().unwrap();
        small.register(scale::handler());
        let error = small.restore_blocking(&path).unwrap_err();
        assert!(matches!(error, ActorError::ArenaFull { .. }), "{error}");
        assert_eq!(small.arena().blocks, 0);
        let stranger = builder.clone().build_blocking().unwrap();
        let error = stranger.restore_blocking(&path).unwrap_err();
        assert!(error.to_string().contains("is not known here"), "{error}");
        assert_eq!(stranger.arena().blocks, 0);

        let runtime = builder.build_blocking().unwrap();
        runtime.register(scale::handler());
        let all = runtime.restore_blocking(&path).unwrap().remove(0);
        assert_eq!(runtime.arena().blocks, 3);
        let (one, other) = (all.actor(0).unwrap(), all.actor(1).unwrap());
        block_on(other.activate()).unwrap();
        for (kernel, len) in [(one, 50), (other.clone(), 7), (other, 300)] {
            let scaled: Scaled = kernel.receive_blocking(Duration::from_secs(20)).unwrap();
            let expected: Vec<f32> = message(len).values.iter().map(|value| value * 0.5).collect();
            assert_eq!((scaled.room, scaled.values), (4, expected));
        }
        empty(&runtime);
        std::fs::remove_file(&path).unwrap();
    }
}
