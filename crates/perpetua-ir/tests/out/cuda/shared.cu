struct u32_array_4 {
    unsigned int at[4];
};

extern __shared__ __align__(16) unsigned int scratch[];

__device__ unsigned int dynamic_shared_bytes()
{
    unsigned int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

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

__device__ unsigned int atomic_add_relaxed_block_u32(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.relaxed.cta.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ float atomic_min_relaxed_device_f32(float* p, float value)
{
    unsigned int old = *(volatile unsigned int*)p;
    for (;;) {
        const unsigned int seen = atomicCAS((unsigned int*)p, old, __float_as_uint(fminf(__uint_as_float(old), value)));
        if (seen == old) {
            return __uint_as_float(seen);
        }
        old = seen;
    }
}

__device__ float atomic_add_relaxed_block_f32(float* p, float value)
{
    float old;
    asm volatile("atom.relaxed.cta.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(p), "f"(value) : "memory");
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

__device__ unsigned int shuffle_down_u32(unsigned int value, unsigned int by)
{
    const unsigned int other = __shfl_down_sync(__activemask(), value, by & 31u);
    return by < 32u ? other : value;
}

extern "C" __global__ void shared_work(unsigned int* x, unsigned long long x_len, int* s, unsigned long long s_len, float* f, unsigned long long f_len, unsigned int n, signed char wide, unsigned int* fault_record, unsigned int site_base)
{
    __shared__ unsigned int bins[16];
    __shared__ float peak;
    bool dead = false;
    unsigned int result = 0u;
    bins[0] = 0u;
    const unsigned long long t = (unsigned long long)(dynamic_shared_bytes() / 4u);
    if ((unsigned long long)threadIdx.x >= t) {
        dead = true;
        report_fault(fault_record, site_base + 0u, (unsigned long long)threadIdx.x, t);
    }
    if (!dead) {
        scratch[threadIdx.x] = dynamic_shared_bytes() / 4u;
    }
    __syncthreads();
    if (!dead) {
        if (n == 0u) {
            dead = true;
            report_fault(fault_record, site_base + 1u, (unsigned long long)threadIdx.x, 0ull);
        } else {
            result = threadIdx.x / n + threadIdx.x;
        }
    }
    unsigned int guarded = 0u;
    if (!dead) {
        guarded = atomic_add_relaxed_block_u32(&bins[0], result);
    }
    const int guarded5 = guarded;
    if (0ull >= s_len) {
        dead = true;
        report_fault(fault_record, site_base + 2u, 0ull, s_len);
        return;
    }
    int guarded1 = 0;
    if (!dead) {
        guarded1 = atomicMax(&s[0], guarded5);
    }
    const float guarded6 = (float)guarded5;
    if (0ull >= f_len) {
        dead = true;
        report_fault(fault_record, site_base + 3u, 0ull, f_len);
        return;
    }
    float guarded2 = 0.0f;
    if (!dead) {
        guarded2 = atomic_min_relaxed_device_f32(&f[0], guarded6);
    }
    float guarded3 = 0.0f;
    if (!dead) {
        guarded3 = atomic_add_relaxed_block_f32(&peak, guarded6);
    }
    if (0ull >= x_len) {
        dead = true;
        report_fault(fault_record, site_base + 4u, 0ull, x_len);
        return;
    }
    unsigned int guarded4 = 0u;
    if (!dead) {
        guarded4 = atomicCAS(&x[0], result, n);
    }
    const unsigned int total = subgroup_add_u32(guarded4);
    const float other = exclusive_max_f32(guarded2);
    const unsigned int other1 = shuffle_down_u32(total, n);
    const u32_array_4 votes = u32_array_4{{__ballot_sync(__activemask(), other < guarded3), 0u, 0u, 0u}};
    __syncthreads();
    if (dead) {
        return;
    }
    if ((unsigned long long)threadIdx.x >= x_len) {
        dead = true;
        report_fault(fault_record, site_base + 5u, (unsigned long long)threadIdx.x, x_len);
        return;
    }
    x[threadIdx.x] = other1 + votes.at[1] + (unsigned int)wide;
}
