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

kernel void reduce_(
    device const float* x_ [[buffer(0)]],
    device float* total_ [[buffer(1)]],
    constant uint* args [[buffer(2)]],
    device atomic_uint* fault_record [[buffer(3)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 bid [[threadgroup_position_in_grid]],
    uint3 bdim [[threads_per_threadgroup]])
{
    const uint x_len_ = args[4];
    x_ += args[5];
    const uint total_len_ = args[6];
    total_ += args[7];
    threadgroup float tile_[64];
    const uint site_base = args[3];
    bool dead = false;
    const uint idx_ = bid.x * bdim.x + tid.x;
    float v_ = 0.0f;
    if (idx_ < x_len_) {
        v_ = x_[idx_];
    }
    tile_[tid.x] = v_;
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    for (uint half_ = 32u; half_ > 0u; half_ = half_ >> 1) {
        if (!dead) {
            if (tid.x < half_) {
                const uint t_ = tid.x + half_;
                const float tile_i_ = tile_[tid.x];
                if (t_ >= 64u) {
                    dead = true;
                    report_fault_(fault_record, site_base + 0u, tid, bid, (ulong)t_, 64ul);
                } else {
                    tile_[tid.x] = tile_i_ + tile_[t_];
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    }
    if (dead) {
        return;
    }
    if (tid.x == 0u) {
        if (0u >= total_len_) {
            dead = true;
            report_fault_(fault_record, site_base + 1u, tid, bid, 0ul, (ulong)total_len_);
            return;
        }
        atomic_fetch_add_explicit((device atomic_float*)&total_[0], tile_[0], memory_order_relaxed);
    }
}
