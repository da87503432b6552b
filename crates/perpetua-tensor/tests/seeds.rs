//! The samples of libtorch-rust's page on its GPU backend, and of trueno's: with this crate's name in the place of the crates' names.

#![allow(clippy::unwrap_used)]

mod libtorch {
    use perpetua_device::future::block_on;
    use perpetua_tensor::gpu::{GpuBuffer, GpuDevice, GpuTensor};
    use std::sync::Arc;

    async fn gpu_example() -> Result<(), Box<dyn std::error::Error>> {
        // Initialize GPU
        let device = Arc::new(GpuDevice::new().await?);

        // Create tensors on GPU
        let a_data = vec![1.0, 2.0, 3.0, 4.0];
        let b_data = vec![5.0, 6.0, 7.0, 8.0];

        let a = GpuTensor::from_slice(&a_data, &[4], Arc::clone(&device))?;
        let b = GpuTensor::from_slice(&b_data, &[4], Arc::clone(&device))?;

        // Perform GPU operation
        let c = a.add(&b).await?;

        // Get result
        let result = c.to_vec().await;
        println!("Result: {:?}", result); // [6.0, 8.0, 10.0, 12.0]
        assert_eq!(result, [6.0, 8.0, 10.0, 12.0]);

        Ok(())
    }

    #[test]
    fn the_quick_example_runs() {
        block_on(gpu_example()).unwrap();
    }

    async fn the_rest() -> Result<(), Box<dyn std::error::Error>> {
        let device = GpuDevice::new().await?;
        println!("Using GPU: {}", device.info().name);

        let data = [1.0f32, -2.0];
        // Upload data to GPU
        let gpu_buffer = GpuBuffer::from_slice(&device, &data);

        // Download data from GPU
        let result: Vec<f32> = gpu_buffer.read().await;
        assert_eq!(result, data);

        let device = Arc::new(device);
        let tensor = GpuTensor::from_slice(&[1.0, -2.0, 3.0, 4.0], &[2, 2], Arc::clone(&device))?;
        let other = GpuTensor::zeros(&[2, 2], device);
        assert_eq!(
            tensor.mul(&other).await?.sigmoid().await?.to_vec().await,
            [0.5; 4]
        );
        assert_eq!(
            tensor.matmul(&tensor).await?.to_vec().await,
            [-5.0, -10.0, 15.0, 10.0]
        );
        assert_eq!(tensor.relu().await?.to_vec().await, [1.0, 0.0, 3.0, 4.0]);
        assert_eq!(tensor.shape(), [2, 2]);
        let wrong = GpuTensor::zeros(&[3], Arc::clone(tensor.device()));
        assert!(tensor.add(&wrong).await.is_err());
        Ok(())
    }

    #[test]
    fn buffers_and_tensors_have_their_names() {
        block_on(the_rest()).unwrap();
    }
}

mod trueno {
    use perpetua_tensor::backends::gpu::{GpuCommandBatch, GpuDevice, runtime};

    fn synchronous() -> Result<(), String> {
        let (m, k, n) = (2, 3, 2);
        let (a, b, input) = ([1.0; 6], [2.0; 6], [-1.0, 2.0]);
        let (mut result, mut output) = ([0.0; 4], [0.0; 2]);
        // Initialize device
        let device = GpuDevice::new()?;
        println!("on {}, a GPU: {}", device.info().name, GpuDevice::is_available());

        // Changed: operators also run where there is no GPU.
        device.matmul(&a, &b, &mut result, m, k, n)?;
        device.relu(&input, &mut output)?;
        let dot = device.dot(&a, &b)?;
        assert_eq!((result, output, dot), ([6.0; 4], [0.0, 2.0], 12.0));
        Ok(())
    }

    #[test]
    fn the_synchronous_sample_runs() {
        synchronous().unwrap();
    }

    async fn asynchronous() -> Result<(), String> {
        let (m, k, n) = (1, 3, 1);
        let (a, b, input) = ([1.0, 2.0, 3.0], [2.0; 3], [-1.0, 2.0]);
        let (mut result, mut output) = ([0.0; 1], [0.0; 2]);
        // Initialize device
        let device = GpuDevice::new_async().await?;
        let _ = GpuDevice::is_available_async().await;

        device.matmul_async(&a, &b, &mut result, m, k, n).await?;
        device.relu_async(&input, &mut output).await?;
        let dot = device.dot_async(&a, &b).await?;
        assert_eq!((result, output, dot), ([12.0], [0.0, 2.0], 12.0));
        Ok(())
    }

    #[test]
    fn the_asynchronous_sample_runs() {
        runtime::block_on(asynchronous()).unwrap();
    }

    async fn detected() -> Result<GpuDevice, String> {
        if runtime::sync_available() {
            // Can use sync APIs (native only)
            GpuDevice::new()
        } else {
            // Must use async APIs (WASM)
            GpuDevice::new_async().await
        }
    }

    async fn batched() -> Result<(), String> {
        let device = detected().await?;
        let mut batch = GpuCommandBatch::new(device);

        // Queue operations (no GPU execution yet)
        let input = batch.upload(&[1.0, 2.0, -3.0, 4.0]);
        let a = batch.relu(input);
        let b = batch.scale(a, 2.0);

        // Execute batch in single GPU round-trip
        batch.execute().await?;

        // Read result
        let result = batch.read(b).await?;
        assert_eq!(result, [2.0, 4.0, 0.0, 8.0]);
        Ok(())
    }

    #[test]
    fn the_batch_sample_runs() {
        runtime::block_on(batched()).unwrap();
    }

    /// Every operator of the page's tables, in both forms.
    #[test]
    fn the_tables_operators_are_there() {
        let device = GpuDevice::new().unwrap();
        let x = [-1.0f32, 0.5, 2.0];
        let near = |name: &str, found: [f32; 3], expected: [f32; 3]| {
            let is_near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(is_near, "{name}: {found:?}, expected {expected:?}");
        };
        macro_rules! check {
            ($name:ident $awaited:ident ($($more:expr),*) $expected:expr) => {
                let mut result = [0.0; 3];
                device.$name(&x, &mut result $(, $more)*).unwrap();
                near(stringify!($name), result, x.map($expected));
                let mut result = [0.0; 3];
                runtime::block_on(device.$awaited(&x, &mut result $(, $more)*)).unwrap();
                near(stringify!($awaited), result, x.map($expected));
            };
        }
        let sum: f32 = x.iter().map(|x| x.exp()).sum();
        check!(relu relu_async () |x: f32| x.max(0.0));
        check!(leaky_relu leaky_relu_async (0.1) |x: f32| if x > 0.0 { x } else { 0.1 * x });
        check!(elu elu_async (1.5) |x: f32| if x > 0.0 { x } else { 1.5 * x.exp_m1() });
        check!(sigmoid sigmoid_async () |x: f32| 1.0 / (1.0 + (-x).exp()));
        check!(tanh tanh_async () f32::tanh);
        check!(swish swish_async () |x: f32| x / (1.0 + (-x).exp()));
        check!(gelu gelu_async () |x: f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh()));
        check!(clip clip_async (0.0, 1.0) |x: f32| x.clamp(0.0, 1.0));
        check!(softmax softmax_async () |x: f32| x.exp() / sum);
        check!(log_softmax log_softmax_async () |x: f32| x - sum.ln());
        let mut result = [0.0; 3];
        device.vec_add(&x, &[1.0; 3], &mut result).unwrap();
        near("vec_add", result, x.map(|x| x + 1.0));
        let mut convolved = [0.0; 2];
        let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        device
            .convolve2d(&image, &[1.0, 0.0, 0.0, 2.0], &mut convolved, 2, 3, 2, 2)
            .unwrap();
        assert_eq!(convolved, [11.0, 14.0]);
        let error = device.relu(&x, &mut [0.0; 2]).unwrap_err();
        assert_eq!(error, "relu: the result has 3 elements, 2 are given for it");
    }
}
