//! Streams, events and graphs as a program holds them. Must not know backends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use perpetua_ir::front::rust::GpuType;

use crate::backend::{GpuEvent, GpuGraph, GpuStream};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::error::Result;
use crate::future::BoxFuture;
use crate::kernel::Launchable;
use crate::launch::{launch, launch_unchecked};
use crate::layout;
use crate::signature::KernelArg;

/// A queue of work, run in order of submission. Cheap to clone; clones are the same stream. Nothing here waits for the
/// device but [`Stream::synchronize`], [`Stream::read`] and their async forms.
///
/// ```
/// use perpetua_device::{BackendKind, Device};
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let stream = device.create_stream()?;
/// let (x, y) = (device.zeros::<f32>(1000)?, device.zeros::<f32>(1000)?);
/// stream.fill(&x, 2.0)?;
/// stream.copy(&x, &y)?; // after the fill
/// assert_eq!(stream.read(&y)?[999], 2.0); // waits for both
/// # Ok::<(), perpetua_device::Error>(())
/// ```
/// [`Stream::wait`] orders streams among each other, [`Stream::capture`] makes a graph of work that is submitted often.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<dyn GpuStream>,
    device: Device,
}

impl Stream {
    pub(crate) fn new(inner: Arc<dyn GpuStream>, device: Device) -> Stream {
        Stream { inner, device }
    }

    /// The backend's stream.
    pub fn inner(&self) -> &Arc<dyn GpuStream> {
        &self.inner
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Submits a launch. Arguments are checked against the kernel's signature, the shape against device and kernel; then
    /// launching is safe: what goes wrong in the kernel is a [`Fault`](crate::Error::Fault) at the next synchronisation, and lanes
    /// that race for one word leave an unspecified value there.
    pub fn launch<K: Launchable + ?Sized>(
        &self,
        kernel: &K,
        config: LaunchConfig,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        launch(
            &self.device,
            &*self.inner,
            &kernel.kernel(&self.device)?,
            &config,
            args,
        )
    }

    /// Submits a launch of a kernel from text other than IR, whose arguments nobody can check.
    ///
    /// # Safety
    /// `args` are what the kernel's text expects ([`KernelSource`](crate::KernelSource) has the conventions), and the text
    /// accesses memory only inside the buffers given to it.
    pub unsafe fn launch_unchecked<K: Launchable + ?Sized>(
        &self,
        kernel: &K,
        config: LaunchConfig,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        let kernel = kernel.kernel(&self.device)?;
        // SAFETY: the caller promises the same.
        unsafe { launch_unchecked(&self.device, &*self.inner, &kernel, &config, args) }
    }

    /// Copies `values` to `buffer`, of equal length. They have been read when this returns.
    pub fn write<T: GpuType>(&self, buffer: &Buffer<T>, values: &[T]) -> Result<()> {
        layout::with_bytes(values, |bytes| self.inner.copy_to_device(bytes, buffer.ptr()))
    }

    /// Waits for the buffer's content after all earlier work of this stream.
    pub fn read<T: GpuType>(&self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        layout::collect(buffer.len(), |bytes| {
            self.inner.read_blocking(buffer.ptr(), bytes)
        })
    }

    /// The same without blocking; the copy is submitted by this call.
    pub fn read_async<T: GpuType>(&self, buffer: &Buffer<T>) -> BoxFuture<'static, Result<Vec<T>>> {
        let (reading, len) = (self.inner.read(buffer.ptr()), buffer.len());
        Box::pin(async move {
            let bytes = reading.await?;
            layout::collect(len, |out| {
                crate::backend::check_sizes("read", bytes.len() as u64, out.len() as u64)?;
                out.copy_from_slice(&bytes);
                Ok(())
            })
        })
    }

    /// Copies one buffer to another of equal length.
    pub fn copy<T: GpuType>(&self, source: &Buffer<T>, destination: &Buffer<T>) -> Result<()> {
        self.inner.copy(source.ptr(), destination.ptr())
    }

    /// Sets every element of `buffer`.
    pub fn fill<T: GpuType>(&self, buffer: &Buffer<T>, value: T) -> Result<()> {
        layout::with_repeated(value, buffer.len(), |content| {
            content.map_or(Ok(()), |content| content.submit(&*self.inner, buffer.ptr()))
        })
    }

    /// Marks this point of the stream.
    pub fn record(&self) -> Result<Event> {
        Ok(Event(self.inner.record()?))
    }

    /// Makes later work of this stream wait for a mark, which may be another stream's.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # fn main() -> perpetua_device::Result<()> {
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let (makes, takes) = (device.create_stream()?, device.create_stream()?);
    /// let (x, y) = (device.zeros::<f32>(1000)?, device.zeros::<f32>(1000)?);
    /// makes.fill(&x, 2.0)?;
    /// takes.wait(&makes.record()?)?;
    /// takes.copy(&x, &y)?;
    /// assert_eq!(takes.read(&y)?[999], 2.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.inner.wait(&*event.0)
    }

    /// Hands gathered work to the driver now. Never needed for correctness.
    pub fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    /// Whether all work submitted so far has ended.
    pub fn is_idle(&self) -> Result<bool> {
        self.inner.is_idle()
    }

    /// Waits for all work submitted so far. The first unreported fault of its kernels is an error.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.synchronize_blocking()
    }

    /// The same without blocking.
    pub fn synchronize_async(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.synchronize()
    }

    /// Captures what `work` submits to this stream on the calling thread, without running it; what other threads submit to it
    /// meanwhile is an error of theirs. Only what goes to *this* stream: [`Buffer`]'s
    /// methods and [`Device::launch`] use the default stream and run at once. Reading results, waiting and
    /// recording events are errors meanwhile.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, Device};
    /// # fn main() -> perpetua_device::Result<()> {
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let (stream, x) = (device.create_stream()?, device.zeros::<f32>(1000)?);
    /// let graph = stream.capture(|stream| stream.fill(&x, 1.0))?;
    /// stream.launch_graph(&graph)?;
    /// stream.synchronize()?;
    /// assert_eq!(x.read()?[999], 1.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        /// Ends a capture whose work panicked: the stream is of use afterwards.
        struct Capturing<'a>(Option<&'a dyn GpuStream>);
        impl Drop for Capturing<'_> {
            fn drop(&mut self) {
                if let Some(stream) = self.0.take() {
                    let _ = stream.end_capture();
                }
            }
        }
        self.inner.begin_capture()?;
        let mut capturing = Capturing(Some(&*self.inner));
        let done = work(self);
        capturing.0 = None;
        let graph = self.inner.end_capture();
        done?;
        Ok(Graph(graph?))
    }

    /// Submits the work of a graph.
    pub fn launch_graph(&self, graph: &Graph) -> Result<()> {
        self.inner.launch_graph(&*graph.0)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream of {:?}", self.device)
    }
}

/// A point in a stream's work. Cheap to clone.
#[derive(Clone)]
pub struct Event(Arc<dyn GpuEvent>);

impl Event {
    /// Whether the work before it has ended.
    pub fn is_complete(&self) -> Result<bool> {
        self.0.is_complete()
    }

    /// Waits until the work before it has ended. Reports no fault.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize_blocking()
    }

    /// The same without blocking.
    pub fn synchronize_async(&self) -> BoxFuture<'_, Result<()>> {
        self.0.synchronize()
    }

    /// Time on the device from `earlier` to this event; both must be complete.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        self.0.elapsed_since(&*earlier.0)
    }

    /// The backend's event.
    pub fn inner(&self) -> &Arc<dyn GpuEvent> {
        &self.0
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event (complete: {:?})", self.0.is_complete())
    }
}

/// Work captured for replay. Cheap to clone.
#[derive(Clone)]
pub struct Graph(Arc<dyn GpuGraph>);

impl Graph {
    /// Submits its work to `stream`.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        stream.launch_graph(self)
    }

    /// Number of launches, copies and fills in it.
    pub fn node_count(&self) -> usize {
        self.0.node_count()
    }

    /// The backend's graph.
    pub fn inner(&self) -> &Arc<dyn GpuGraph> {
        &self.0
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph of {} nodes", self.node_count())
    }
}
