struct u32_array_4 {
    unsigned int at[4];
};

extern __shared__ __align__(16) unsigned int scratch[];

// The first lane that faults in a launch claims the record.
__device__ void report_fault(unsigned int* record, unsigned int site, unsigned long long first, unsigned long long second)
{
    if (atomicCAS_system(&record[0], 0u, 1u) != 0u) {
        return;
    }
    record[2] = blockIdx.x;
    record[3] = blockIdx.y;
    record[4] = blockIdx.z;
    record[5] = threadIdx.x;
    record[6] = threadIdx.y;
    record[7] = threadIdx.z;
    record[8] = (unsigned int)first;
    record[9] = (unsigned int)(first >> 32);
    record[10] = (unsigned int)second;
    record[11] = (unsigned int)(second >> 32);
    record[1] = site;
}

__device__ unsigned int atomic_max_acq_rel_block_u32(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.cta.max.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ int atomic_min_seq_cst_system_i32(int* p, int value)
{
    int old;
    asm volatile("fence.sc.sys; atom.acq_rel.sys.min.s32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ unsigned int compare_exchange_release_device_u32(unsigned int* p, unsigned int expected, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.release.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(expected), "r"(value) : "memory");
    return old;
}

__device__ float atomic_max_release_device_f32(float* p, float value)
{
    unsigned int old = *(volatile unsigned int*)p;
    for (;;) {
        const unsigned int seen = compare_exchange_release_device_u32((unsigned int*)p, old, __float_as_uint(fmaxf(__uint_as_float(old), value)));
        if (seen == old) {
            return __uint_as_float(seen);
        }
        old = seen;
    }
}

__device__ float atomic_exchange_acq_rel_device_f32(float* p, float value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(__float_as_uint(value)) : "memory");
    return __uint_as_float(old);
}

__device__ unsigned int compare_exchange_acq_rel_device_u32(unsigned int* p, unsigned int expected, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(expected), "r"(value) : "memory");
    return old;
}

__device__ unsigned int load_acquire_system_u32(const unsigned int* p)
{
    unsigned int value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}

__device__ void store_release_device_u32(unsigned int* p, unsigned int value)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(p), "r"(value) : "memory");
}

__device__ unsigned int dynamic_shared_bytes()
{
    unsigned int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

__device__ unsigned int atomic_add_relaxed_block_u32(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.relaxed.cta.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ unsigned int subgroup_add_u32(unsigned int value)
{
    const unsigned int active = __activemask();
    unsigned int total = value;
    if (active == 0xffffffffu) {
        for (int by = 16; by > 0; by /= 2) {
            total = total + __shfl_xor_sync(active, total, by);
        }
        return total;
    }
    total = __shfl_sync(active, value, __ffs(active) - 1);
    for (unsigned int rest = active & (active - 1u); rest != 0u; rest &= rest - 1u) {
        total = total + __shfl_sync(active, value, __ffs(rest) - 1);
    }
    return total;
}

__device__ unsigned int lane_index()
{
    unsigned int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

__device__ float exclusive_max_f32(float value)
{
    const unsigned int active = __activemask();
    const unsigned int lane = lane_index();
    if (active == 0xffffffffu) {
        float total = value;
        for (unsigned int by = 1u; by < 32u; by *= 2u) {
            const float other = __shfl_up_sync(active, total, by);
            if (lane >= by) {
                total = fmaxf(other, total);
            }
        }
        const float before = __shfl_up_sync(active, total, 1);
        return lane == 0u ? __uint_as_float(0xff800000u) : before;
    }
    float total = __uint_as_float(0xff800000u);
    for (unsigned int rest = active; rest != 0u; rest &= rest - 1u) {
        const unsigned int from = __ffs(rest) - 1;
        const float other = __shfl_sync(active, value, from);
        if (from < lane) {
            total = fmaxf(total, other);
        }
    }
    return total;
}

// Room for a record of so many words in the ring, or null.
__device__ unsigned int* print_begin(unsigned int* ring, unsigned int words)
{
    unsigned int at;
    asm volatile("atom.relaxed.sys.add.u32 %0, [%1], %2;" : "=r"(at) : "l"(ring + 0), "r"(words) : "memory");
    const unsigned int capacity = ring[1];
    if (at > capacity || words > capacity - at) {
        asm volatile("red.relaxed.sys.add.u32 [%0], 1;" :: "l"(ring + 2) : "memory");
        return 0;
    }
    return ring + 4 + at;
}

__device__ void print_value(unsigned int* at, unsigned long long bits)
{
    at[0] = (unsigned int)bits;
    at[1] = (unsigned int)(bits >> 32);
}

// Pairs with the host's acquire of a record's first word.
__device__ void print_end(unsigned int* record, unsigned int number)
{
    asm volatile("st.release.sys.u32 [%0], %1;" :: "l"(record), "r"(number) : "memory");
}

extern "C" __global__ void memory(unsigned int* x, unsigned long long x_len, int* s, unsigned long long s_len, float* f, unsigned long long f_len, unsigned long long* w, unsigned long long w_len, unsigned int* fault_record, unsigned int site_base, unsigned int* print_ring)
{
    __shared__ unsigned int flags[4];
    bool dead = false;
    if (0ull >= x_len) {
        dead = true;
        report_fault(fault_record, site_base + 0u, 0ull, x_len);
        return;
    }
    const unsigned int old = atomicAdd(&x[0], threadIdx.x);
    const unsigned int old1 = atomic_max_acq_rel_block_u32(&x[0], threadIdx.x);
    if (0ull >= s_len) {
        dead = true;
        report_fault(fault_record, site_base + 1u, 0ull, s_len);
        return;
    }
    atomicSub(&s[0], (int)threadIdx.x);
    atomic_min_seq_cst_system_i32(&s[0], (int)threadIdx.x);
    const float tx = (float)threadIdx.x;
    if (0ull >= f_len) {
        dead = true;
        report_fault(fault_record, site_base + 2u, 0ull, f_len);
        return;
    }
    atomicAdd(&f[0], tx);
    atomic_max_release_device_f32(&f[0], tx);
    atomic_exchange_acq_rel_device_f32(&f[0], tx);
    if (0ull >= w_len) {
        dead = true;
        report_fault(fault_record, site_base + 3u, 0ull, w_len);
        return;
    }
    atomicOr(&w[0], (unsigned long long)threadIdx.x);
    const unsigned int old2 = compare_exchange_acq_rel_device_u32(&x[0], old, old1);
    const bool test = (unsigned long long)threadIdx.x >= x_len;
    if (test) {
        dead = true;
        report_fault(fault_record, site_base + 4u, (unsigned long long)threadIdx.x, x_len);
    }
    unsigned int guarded = 0u;
    if (!test) {
        guarded = load_acquire_system_u32((const unsigned int*)&x[threadIdx.x]);
    }
    if (!dead) {
        store_release_device_u32((unsigned int*)&x[threadIdx.x], guarded);
    }
    __threadfence();
    const unsigned long long t = (unsigned long long)(dynamic_shared_bytes() / 4u);
    if ((unsigned long long)threadIdx.x >= t) {
        dead = true;
        report_fault(fault_record, site_base + 5u, (unsigned long long)threadIdx.x, t);
    }
    if (!dead) {
        scratch[threadIdx.x] = old2;
    }
    __syncthreads();
    unsigned int guarded1 = 0u;
    if (!dead) {
        guarded1 = atomic_add_relaxed_block_u32(&flags[0], dynamic_shared_bytes() / 4u);
    }
    const u32_array_4 votes = u32_array_4{{__ballot_sync(__activemask(), threadIdx.x < guarded1), 0u, 0u, 0u}};
    const unsigned int total = subgroup_add_u32(votes.at[0]);
    const float other = exclusive_max_f32(tx);
    const unsigned int other1 = __shfl_xor_sync(__activemask(), total, 0u);
    if (dead) {
        return;
    }
    if (unsigned int* record = print_begin(print_ring, 7u)) {
        print_value(record + 1, (unsigned long long)threadIdx.x);
        print_value(record + 3, (unsigned long long)__float_as_uint(other));
        print_value(record + 5, (unsigned long long)other1);
        print_end(record, site_base + 1u);
    }
    x[threadIdx.x] = other1;
}
