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

kernel void loops_(
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
    const uint n_ = args[8];
    const uint site_base = args[3];
    uint sum_ = 0u;
    uint i_ = 0u;
    while (i_ < n_) {
        uint j_ = 0u;
        bool leave_ = false;
        bool next_ = false;
        for (; j_ < n_; j_ += 1u) {
            if (i_ == j_) {
                continue;
            }
            const uint t_ = i_ + j_;
            if (t_ >= x_len_) {
                report_fault_(fault_record, site_base + 0u, tid, bid, (ulong)t_, (ulong)x_len_);
                return;
            }
            const uint x_i_ = x_[t_];
            if (x_i_ == 99u) {
                leave_ = true;
                break;
            }
            if (x_i_ == 7u) {
                next_ = true;
                break;
            }
            if (x_i_ == 1u || x_i_ == 2u) {
                continue;
            } else if (x_i_ == 3u) {
                break;
            }
            sum_ += x_i_;
        }
        if (leave_) {
            break;
        }
        if (next_) {
            continue;
        }
        i_ += 1u;
    }
    uint k_ = sum_;
    while (k_ > n_) {
        k_ /= 2u;
    }
    switch (n_) {
        case 1u: {
            k_ = 0u;
            break;
        }
        case 2u: case 3u: {
            k_ = 1u;
            break;
        }
    }
    if (tid.x >= out_len_) {
        report_fault_(fault_record, site_base + 1u, tid, bid, (ulong)tid.x, (ulong)out_len_);
        return;
    }
    out_[tid.x] = k_;
}
