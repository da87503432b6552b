struct u32_array_4_ {
    unsigned int at[4];
};

extern __shared__ __align__(16) unsigned int scratch_[];

__device__ unsigned int dynamic_shared_bytes_()
{
    unsigned int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

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

__device__ unsigned int atomic_add_relaxed_block_u32_(unsigned int* p, unsigned int value)
{
    unsigned int old;
    asm volatile("atom.relaxed.cta.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
    return old;
}

__device__ float atomic_min_relaxed_device_f32_(float* p, float value)
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

__device__ float atomic_add_relaxed_block_f32_(float* p, float value)
{
    float old;
    asm volatile("atom.relaxed.cta.add.f32 %0, [%1], %2;" : "=f"(old) : "l"(p), "f"(value) : "memory");
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

__device__ unsigned int shuffle_down_u32_(unsigned int value, unsigned int by)
{
    const unsigned int other = __shfl_down_sync(__activemask(), value, by & 31u);
    return by < 32u ? other : value;
}

extern "C" __global__ void shared_work_(unsigned int* x_, unsigned long long x_len_, int* s_, unsigned long long s_len_, float* f_, unsigned long long f_len_, unsigned int n_, signed char wide_, unsigned int* fault_record, unsigned int site_base)
{
    __shared__ unsigned int bins_[16];
    __shared__ float peak_;
    bool dead = false;
    unsigned int result_ = 0u;
    bins_[0] = 0u;
    const unsigned long long t_ = (unsigned long long)(dynamic_shared_bytes_() / 4u);
    if ((unsigned long long)threadIdx.x >= t_) {
        dead = true;
        report_fault_(fault_record, site_base + 0u, (unsigned long long)threadIdx.x, t_);
    }
    if (!dead) {
        scratch_[threadIdx.x] = dynamic_shared_bytes_() / 4u;
    }
    __syncthreads();
    if (!dead) {
        if (n_ == 0u) {
            dead = true;
            report_fault_(fault_record, site_base + 1u, (unsigned long long)threadIdx.x, 0ull);
        } else {
            result_ = threadIdx.x / n_ + threadIdx.x;
        }
    }
    unsigned int guarded_ = 0u;
    if (!dead) {
        guarded_ = atomic_add_relaxed_block_u32_(&bins_[0], result_);
    }
    const int guarded5_ = guarded_;
    if (0ull >= s_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 2u, 0ull, s_len_);
        return;
    }
    int guarded1_ = 0;
    if (!dead) {
        guarded1_ = atomicMax(&s_[0], guarded5_);
    }
    const float guarded6_ = (float)guarded5_;
    if (0ull >= f_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 3u, 0ull, f_len_);
        return;
    }
    float guarded2_ = 0.0f;
    if (!dead) {
        guarded2_ = atomic_min_relaxed_device_f32_(&f_[0], guarded6_);
    }
    float guarded3_ = 0.0f;
    if (!dead) {
        guarded3_ = atomic_add_relaxed_block_f32_(&peak_, guarded6_);
    }
    if (0ull >= x_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 4u, 0ull, x_len_);
        return;
    }
    unsigned int guarded4_ = 0u;
    if (!dead) {
        guarded4_ = atomicCAS(&x_[0], result_, n_);
    }
    const unsigned int total_ = subgroup_add_u32_(guarded4_);
    const float other_ = exclusive_max_f32_(guarded2_);
    const unsigned int other1_ = shuffle_down_u32_(total_, n_);
    const u32_array_4_ votes_ = u32_array_4_{{__ballot_sync(__activemask(), other_ < guarded3_), 0u, 0u, 0u}};
    __syncthreads();
    if (dead) {
        return;
    }
    if ((unsigned long long)threadIdx.x >= x_len_) {
        dead = true;
        report_fault_(fault_record, site_base + 5u, (unsigned long long)threadIdx.x, x_len_);
        return;
    }
    x_[threadIdx.x] = other1_ + votes_.at[1] + (unsigned int)wide_;
}
