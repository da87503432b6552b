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

kernel void waits_(
    device const uint* x_ [[buffer(0)]],
    device uint* out_ [[buffer(1)]],
    constant uint* args [[buffer(2)]],
    device atomic_uint* fault_record [[buffer(3)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 bid [[threadgroup_position_in_grid]])
{
    const uint x_len_ = args[4];
    x_ += args[5];
    const uint out_len_ = args[6];
    out_ += args[7];
    threadgroup uint turns_[2];
    threadgroup uint a_lane_is_dead_;
    const uint site_base = args[3];
    bool dead = false;
    a_lane_is_dead_ = 0u;
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    const bool test_ = tid.x == 0u;
    if (test_) {
        turns_[0] = 0u;
    }
    uint n_ = 0u;
    for (;;) {
        const uint t_ = n_ + 1u;
        n_ = t_;
        if (!dead) {
            if (test_ && t_ == 3u) {
                turns_[0] = 5u;
            }
        }
        if (dead) {
            a_lane_is_dead_ = 1u;
        }
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
        const uint t1_ = tid.x + t_;
        const bool test1_ = t1_ >= x_len_;
        if (test1_) {
            dead = true;
            report_fault_(fault_record, site_base + 0u, tid, bid, (ulong)t1_, (ulong)x_len_);
        }
        uint guarded_ = 0u;
        if (!test1_) {
            guarded_ = x_[t1_];
        }
        const uint a_lane_is_dead_i_ = a_lane_is_dead_;
        const uint turns_i_ = turns_[0];
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
        if (a_lane_is_dead_i_ != 0u) {
            return;
        }
        if (t_ == turns_i_) {
            break;
        }
        if (tid.x >= out_len_) {
            dead = true;
            report_fault_(fault_record, site_base + 1u, tid, bid, (ulong)tid.x, (ulong)out_len_);
        }
        if (!dead) {
            out_[tid.x] = guarded_;
        }
    }
}
