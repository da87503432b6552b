#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

// The first lane that faults in a launch claims the record. The exchange may fail for no reason.
static inline void report_fault(device atomic_uint* record, uint site, uint3 tid, uint3 bid, ulong first, ulong second)
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

kernel void loops(
    device const uint* x [[buffer(0)]],
    device uint* out [[buffer(1)]],
    constant uint* args [[buffer(2)]],
    device atomic_uint* fault_record [[buffer(3)]],
    uint3 tid [[thread_position_in_threadgroup]],
    uint3 bid [[threadgroup_position_in_grid]])
{
    const uint x_len = args[4];
    x += args[5];
    const uint out_len = args[6];
    out += args[7];
    const uint n = args[8];
    const uint site_base = args[3];
    uint sum = 0u;
    uint i = 0u;
    while (i < n) {
        uint j = 0u;
        bool leave = false;
        bool next = false;
        for (; j < n; j += 1u) {
            if (i == j) {
                continue;
            }
            const uint t = i + j;
            if (t >= x_len) {
                report_fault(fault_record, site_base + 0u, tid, bid, (ulong)t, (ulong)x_len);
                return;
            }
            const uint x_i = x[t];
            if (x_i == 99u) {
                leave = true;
                break;
            }
            if (x_i == 7u) {
                next = true;
                break;
            }
            if (x_i == 1u || x_i == 2u) {
                continue;
            } else if (x_i == 3u) {
                break;
            }
            sum += x_i;
        }
        if (leave) {
            break;
        }
        if (next) {
            continue;
        }
        i += 1u;
    }
    uint k = sum;
    while (k > n) {
        k /= 2u;
    }
    switch (n) {
        case 1u: {
            k = 0u;
            break;
        }
        case 2u: case 3u: {
            k = 1u;
            break;
        }
    }
    if (tid.x >= out_len) {
        report_fault(fault_record, site_base + 1u, tid, bid, (ulong)tid.x, (ulong)out_len);
        return;
    }
    out[tid.x] = k;
}
