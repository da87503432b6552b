#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// The first lane that faults in a launch claims the record. The exchange may fail for no reason.
static inline void report_fault_(device atomic_uint* record, uint site, uint3 tid, uint3 bid, ulong first, ulong second)
{
    uint claimed = 0u;
    while (!atomic_compare_exchange_weak_explicit(&record[0], &claimed, 1u, memory_order_relaxed, memory_order_relaxed)) {
        if (claimed != 0u) {
            return;
        }
    }
    atomic_store_explicit(&record[2], bid.x, memory_order_relaxed);
    atomic_store_explicit(&record[3], bid.y, memory_order_relaxed);
    atomic_store_explicit(&record[4], bid.z, memory_order_relaxed);
    atomic_store_explicit(&record[5], tid.x, memory_order_relaxed);
    atomic_store_explicit(&record[6], tid.y, memory_order_relaxed);
    atomic_store_explicit(&record[7], tid.z, memory_order_relaxed);
    atomic_store_explicit(&record[8], uint(first), memory_order_relaxed);
    atomic_store_explicit(&record[9], uint(first >> 32), memory_order_relaxed);
    atomic_store_explicit(&record[10], uint(second), memory_order_relaxed);
    atomic_store_explicit(&record[11], uint(second >> 32), memory_order_relaxed);
    atomic_store_explicit(&record[1], site, memory_order_relaxed);
}

kernel void saxpy_(
    device const float* x_ [[buffer(0)]],
    device float* y_ [[buffer(1)]],
    constant uint* args [[buffer(2)]],
    device atomic_uint* fault_record [[buffer(3)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 bid [[threadgroup_position_in_grid]],
    uint3 bdim [[threads_per_threadgroup]])
{
    const float a_ = as_type<float>(args[4]);
    const uint x_len_ = args[5];
    x_ += args[6];
    const uint y_len_ = args[7];
    y_ += args[8];
    const int n_ = (int)args[9];
    const uint site_base = args[3];
    const int idx_ = bid.x * bdim.x + tid.x;
    if (idx_ >= n_) {
        return;
    }
    if ((ulong)idx_ >= (ulong)x_len_) {
        report_fault_(fault_record, site_base + 0u, tid, bid, (ulong)idx_, (ulong)x_len_);
        return;
    }
    if ((ulong)idx_ >= (ulong)y_len_) {
        report_fault_(fault_record, site_base + 1u, tid, bid, (ulong)idx_, (ulong)y_len_);
        return;
    }
    y_[idx_] = a_ * x_[idx_] + y_[idx_];
}
