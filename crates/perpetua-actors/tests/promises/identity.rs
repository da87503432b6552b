//! Names are not identities: messages are told apart by their layout, too, handlers by their path.

use perpetua::actors::{ActorError, LaunchOptions, RingMessage};

use super::{builder, engines};

mod one {
    use perpetua::actors::{Context, RingMessage, ring_kernel};
    use perpetua::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Ping {
        pub(crate) value: f32,
    }

    #[ring_kernel]
    pub(crate) fn handle(_ctx: &mut Context, count: &mut u32, ping: Ping) -> Ping {
        *count += 1;
        ping
    }
}

mod other {
    use perpetua::actors::{Context, RingMessage, ring_kernel};
    use perpetua::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
    #[repr(C)]
    pub(crate) struct Ping {
        pub(crate) value: u32,
    }

    #[ring_kernel]
    pub(crate) fn handle(_ctx: &mut Context, count: &mut u32, ping: Ping) -> Ping {
        *count += 100;
        ping
    }
}

pub(crate) fn types_and_handlers_are_told_apart() {
    assert_ne!(one::Ping::TYPE_ID, other::Ping::TYPE_ID);
    let file = engines::file("perpetua-identity");
    let runtime = builder().build_blocking().unwrap();
    let options = LaunchOptions::new(one::handle::handler());
    let kernel = runtime.launch_blocking("one", options).unwrap();
    let error = kernel.send(&other::Ping { value: 1 }).unwrap_err();
    assert!(matches!(error, ActorError::ForeignMessage { .. }), "{error}");
    let _: one::Ping = kernel.ask_blocking(&one::Ping { value: 1.5 }).unwrap();
    runtime.checkpoint_blocking(&file).unwrap();
    drop((kernel, runtime));

    let again = builder().build_blocking().unwrap();
    again.register(other::handle::handler());
    let error = again.restore_blocking(&file).unwrap_err().to_string();
    assert!(
        error.contains("identity::one::handle` is not known here"),
        "{error}"
    );
    again.register(one::handle::handler());
    let error = again
        .launch_blocking("handle", LaunchOptions::default())
        .unwrap_err();
    assert!(
        error.to_string().contains("the name of several handlers"),
        "{error}"
    );
    let restored = again.restore_blocking(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let _: one::Ping = restored[0].ask_blocking(&one::Ping { value: 2.5 }).unwrap();
    assert_eq!(restored[0].read_state::<u32>().unwrap(), 2);
}
