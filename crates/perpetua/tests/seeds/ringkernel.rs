//! RingKernel's README.

use perpetua::actors::{ActorId, Header, Kind, Packet};
use perpetua::device::future::block_on;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Instead of `#[tokio::main]`: any executor will do.
pub(crate) fn run(future: impl Future<Output = Outcome>) {
    assert_eq!(block_on(future).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn quick_start() {
    use perpetua::prelude::*;

    async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
        // Create runtime (uses CPU backend by default)
        let runtime = RingKernel::builder().backend(Backend::Cpu).build().await?;

        // Launch a kernel
        let kernel = runtime.launch("processor", LaunchOptions::default()).await?;

        // Kernel is active and ready to process messages
        println!("State: {:?}", kernel.state());

        // Lifecycle management
        kernel.deactivate().await?;
        kernel.activate().await?;
        kernel.terminate().await?;

        runtime.shutdown().await?;
        Ok(())
    }
    run(main());
}

#[test]
fn kernel_lifecycle() {
    use perpetua::prelude::*;

    run(async {
        let runtime = RingKernel::builder().build().await?;
        // Manual lifecycle control
        let kernel = runtime
            .launch("worker", LaunchOptions::default().without_auto_activate())
            .await?;

        kernel.activate().await?; // Start processing
        kernel.deactivate().await?; // Pause
        kernel.activate().await?; // Resume
        kernel.terminate().await?; // Clean shutdown
        Ok(())
    });
}

#[test]
fn launch_options() {
    use perpetua::prelude::*;

    let options = LaunchOptions::default()
        .with_queue_capacity(4096) // Must be power of 2
        .with_block_size(256) // Threads per block
        .with_priority(priority::HIGH)
        .without_auto_activate();
    run(async {
        CpuRuntime::new().await?.launch("options", options).await?;
        Ok(())
    });
}

#[test]
fn kernel_to_kernel_messaging() {
    use perpetua::prelude::*;

    run(async {
        // K2K is enabled by default
        let runtime = CpuRuntime::new().await?;
        let broker = runtime.k2k_broker().unwrap();

        let source_id = runtime.launch("source", LaunchOptions::default()).await?.id();
        let dest_id = runtime.launch("dest", LaunchOptions::default()).await?.id();
        let envelope = envelope();
        // Kernels can send messages directly to each other
        let receipt = broker.send(source_id, dest_id, envelope).await?;
        assert!(receipt.is_accepted());
        Ok(())
    });
}

fn envelope() -> Packet {
    let header = Header {
        destination: 0,
        sender: ActorId::HOST,
        type_id: 1,
        correlation: 0,
        sent: 0,
        kind: Kind::Message,
        priority: 128,
        words: 0,
        deadline: 0,
        deliveries: Default::default(),
    };
    Packet {
        header,
        payload: [0; 16],
    }
}

#[test]
fn hybrid_logical_clocks() {
    use perpetua::prelude::*;

    let node_id = 1;
    let receive_timestamp = || HlcClock::new(2).tick();
    run(async {
        let clock = HlcClock::new(node_id);

        let ts1 = clock.tick();
        let ts2 = clock.tick();
        assert!(ts1 < ts2);

        // Synchronize with remote timestamp
        let remote_ts = receive_timestamp();
        let synced = clock.update(&remote_ts)?;
        assert!(synced > remote_ts);
        Ok(())
    });
}

#[test]
#[expect(
    unused_must_use,
    reason = "the document drops what `subscribe` gives; its patterns are sound"
)]
fn pub_sub_messaging() {
    use perpetua::prelude::*;

    let (kernel_id, sender, envelope) = (ActorId(1), ActorId(2), envelope());
    let timestamp = HlcTimestamp::new(1, 0, 0).unwrap();
    run(async {
        let broker = PubSubBroker::new(PubSubConfig::default());

        // Subscribe with wildcards: * (single level), # (multi-level)
        broker.subscribe(kernel_id, Topic::new("sensors/+/temperature"));
        broker.subscribe(kernel_id, Topic::new("events/#"));

        // Publish
        broker.publish(
            Topic::new("sensors/room1/temperature"),
            sender,
            envelope,
            timestamp,
        )?;
        assert_eq!(broker.subscriptions_of(kernel_id).len(), 2);
        Ok(())
    });
}

mod proc_macros {
    use perpetua::prelude::*;

    #[derive(RingMessage)]
    #[message(type_id = 1)]
    struct ComputeRequest {
        #[message(id)]
        id: MessageId,
        data: Vec<f32>,
    }

    // Changed: plain copies lie in device memory, in C's layout, and a derive cannot add that.
    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    struct Matrix4x4 {
        data: [f32; 16],
    }

    #[test]
    fn they_are_what_they_say() {
        let request = ComputeRequest {
            id: MessageId(7),
            data: vec![1.0; 3],
        };
        let matrix = Matrix4x4 { data: [1.0; 16] };
        assert_eq!((request.data.len(), matrix.data.len()), (3, 16));
    }
}

#[test]
fn code_generation() {
    use perpetua::transpile::{dsl::*, transpile_global_kernel};
    use syn::parse_quote;

    run(async {
        // Write kernel logic in Rust DSL
        let kernel: syn::ItemFn = parse_quote! {
            fn my_kernel(data: &mut [f32], n: i32) {
                let idx = block_idx_x() * block_dim_x() + thread_idx_x();
                if idx >= n { return; }
                data[idx as usize] = data[idx as usize] * 2.0;
            }
        };

        // Transpile to CUDA C
        let cuda_code = transpile_global_kernel(&kernel)?;
        // Generates: extern "C" __global__ void my_kernel(float* data, int n) { ... }
        assert!(cuda_code.contains("extern \"C\" __global__ void") && cuda_code.contains(" my_kernel("));
        // Beside the document: what the kernel calls runs as plain Rust, too.
        assert_eq!((thread_idx_x(), block_dim_x()), (0, 1));
        Ok(())
    });
}

/// The same document's page on backends.
mod backends {
    use super::run;

    #[test]
    fn transpilation() {
        use perpetua::transpile::dsl::*;
        use perpetua::transpile::{StencilConfig, transpile_global_kernel, transpile_stencil_kernel};
        use syn::parse_quote;

        run(async {
            // Generic kernel using block/thread indices
            let kernel: syn::ItemFn = parse_quote! {
                fn vector_scale(data: &mut [f32], scale: f32, n: i32) {
                    let idx = block_idx_x() * block_dim_x() + thread_idx_x();
                    if idx >= n { return; }
                    data[idx as usize] = data[idx as usize] * scale;
                }
            };
            let cuda = transpile_global_kernel(&kernel)?;

            // Stencil kernel using GridPos abstraction
            let stencil: syn::ItemFn = parse_quote! {
                fn laplacian(input: &[f32], output: &mut [f32], pos: GridPos) {
                    let lap = pos.north(input) + pos.south(input)
                            + pos.east(input) + pos.west(input)
                            - 4.0 * input[pos.idx()];
                    output[pos.idx()] = lap;
                }
            };
            let config = StencilConfig::new("laplacian")
                .with_tile_size(16, 16)
                .with_halo(1);
            let cuda_stencil = transpile_stencil_kernel(&stencil, &config)?;
            assert!(cuda.contains(" vector_scale(") && cuda_stencil.contains(" laplacian("));

            // Thread/block indices (return 0 on CPU, compile to CUDA intrinsics)
            let tx = thread_idx_x(); // -> threadIdx.x
            let bx = block_idx_x(); // -> blockIdx.x
            let bd = block_dim_x(); // -> blockDim.x
            let gd = grid_dim_x(); // -> gridDim.x
            assert_eq!([tx, bx, bd, gd], [0, 0, 1, 1]);

            // Synchronization (no-op on CPU)
            sync_threads(); // -> __syncthreads()
            thread_fence(); // -> __threadfence()
            Ok(())
        });
    }
}
