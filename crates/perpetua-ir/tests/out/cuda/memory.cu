struct u32_array_4_ {
    unsigned int at[4];
};

extern __shared__ __align__(16) unsigned int scratch_[];

// The first lane that faults in a launch claims the record.
__device__ void report_fault_(unsigned int* record, unsigned int site, unsigned long long first, unsigned long long second)
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

__device__ unsigned int atomic_max_acq_rel_block_u32_(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.cta.max.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ int atomic_min_seq_cst_system_i32_(int* p, int value)
{
    int old;
    asm volatile("fence.sc.sys; atom.acq_rel.sys.min.s32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ unsigned int compare_exchange_release_device_u32_(unsigned int* p, unsigned int expected, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.release.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(expected), "r"(value) : "memory");
    return old;
}

__device__ float atomic_max_release_device_f32_(float* p, float value)
{
    unsigned int old = *(volatile unsigned int*)p;
    for (;;) {
        const unsigned int seen = compare_exchange_release_device_u32_((unsigned int*)p, old, __float_as_uint(fmaxf(__uint_as_float(old), value)));
        if (seen == old) {
            return __uint_as_float(seen);
        }
        old = seen;
    }
}

__device__ float atomic_exchange_acq_rel_device_f32_(float* p, float value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(__float_as_uint(value)) : "memory");
    return __uint_as_float(old);
}

__device__ unsigned int compare_exchange_acq_rel_device_u32_(unsigned int* p, unsigned int expected, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(expected), "r"(value) : "memory");
    return old;
}

__device__ unsigned int load_acquire_system_u32_(const unsigned int* p)
{
    unsigned int value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}

__device__ void store_release_device_u32_(unsigned int* p, unsigned int value)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(p), "r"(value) : "memory");
}

__device__ unsigned int dynamic_shared_bytes_()
{
    unsigned int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

__device__ unsigned int atomic_add_relaxed_block_u32_(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.relaxed.cta.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ unsigned int subgroup_add_u32_(unsigned int value)
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

__device__ unsigned int lane_index_()
{
    unsigned int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

__device__ float exclusive_max_f32_(float value)
{
    const unsigned int active = __activemask();
    const unsigned int lane = lane_index_();
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
__device__ unsigned int* print_begin_(unsigned int* ring, unsigned int words)
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

__device__ void print_value_(unsigned int* at, unsigned long long bits)
{
    at[0] = (unsigned int)bits;
    at[1] = (unsigned int)(bits >> 32);
}

// Pairs with the host's acquire of a record's first word.
__device__ void print_end_(unsigned int* record, unsigned int number)
{
    asm volatile("st.release.sys.u32 [%0], %1;" :: "l"(record), "r"(number) : "memory");
}

extern "C" __global__ void memory_(unsigned int* x_, unsigned long long x_len_, int* s_, unsigned long long s_len_, float* f_, unsigned long long f_len_, unsigned long long* w_, unsigned long long w_len_, unsigned int* fault_record, unsigned int site_base, unsigned int* print_ring)
{
    __shared__ unsigned int flags_[4];
    bool dead = false;
    if (0ull >= x_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 0u, 0ull, x_len_);
        return;
    }
    const unsigned int old_ = atomicAdd(&x_[0], threadIdx.x);
    const unsigned int old1_ = atomic_max_acq_rel_block_u32_(&x_[0], threadIdx.x);
    if (0ull >= s_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 1u, 0ull, s_len_);
        return;
    }
    atomicSub(&s_[0], (int)threadIdx.x);
    atomic_min_seq_cst_system_i32_(&s_[0], (int)threadIdx.x);
    const float tx_ = (float)threadIdx.x;
    if (0ull >= f_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 2u, 0ull, f_len_);
        return;
    }
    atomicAdd(&f_[0], tx_);
    atomic_max_release_device_f32_(&f_[0], tx_);
    atomic_exchange_acq_rel_device_f32_(&f_[0], tx_);
    if (0ull >= w_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 3u, 0ull, w_len_);
        return;
    }
    atomicOr(&w_[0], (unsigned long long)threadIdx.x);
    const unsigned int old2_ = compare_exchange_acq_rel_device_u32_(&x_[0], old_, old1_);
    const bool test_ = (unsigned long long)threadIdx.x >= x_len_;
    if (test_) {
        dead = true;
        report_fault_(fault_record, site_base + 4u, (unsigned long long)threadIdx.x, x_len_);
    }
    unsigned int guarded_ = 0u;
    if (!test_) {
        guarded_ = load_acquire_system_u32_((const unsigned int*)&x_[threadIdx.x]);
    }
    if (!dead) {
        store_release_device_u32_((unsigned int*)&x_[threadIdx.x], guarded_);
    }
    __threadfence();
    const unsigned long long t_ = (unsigned long long)(dynamic_shared_bytes_() / 4u);
    if ((unsigned long long)threadIdx.x >= t_) {
        dead = true;
        report_fault_(fault_record, site_base + 5u, (unsigned long long)threadIdx.x, t_);
    }
    if (!dead) {
        scratch_[threadIdx.x] = old2_;
    }
    __syncthreads();
    unsigned int guarded1_ = 0u;
    if (!dead) {
        guarded1_ = atomic_add_relaxed_block_u32_(&flags_[0], dynamic_shared_bytes_() / 4u);
    }
    const u32_array_4_ votes_ = u32_array_4_{{__ballot_sync(__activemask(), threadIdx.x < guarded1_), 0u, 0u, 0u}};
    const unsigned int total_ = subgroup_add_u32_(votes_.at[0]);
    const float other_ = exclusive_max_f32_(tx_);
    const unsigned int other1_ = __shfl_xor_sync(__activemask(), total_, 0u);
    if (dead) {
        return;
    }
    if (unsigned int* record_ = print_begin_(print_ring, 7u)) {
        print_value_(record_ + 1, (unsigned long long)threadIdx.x);
        print_value_(record_ + 3, (unsigned long long)__float_as_uint(other_));
        print_value_(record_ + 5, (unsigned long long)other1_);
        print_end_(record_, site_base + 1u);
    }
    x_[threadIdx.x] = other1_;
}
