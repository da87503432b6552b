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

extern "C" __global__ void __launch_bounds__(64) reduce_(const float* x_, unsigned long long x_len_, float* total_, unsigned long long total_len_, unsigned int* fault_record, unsigned int site_base)
{
    __shared__ float tile_[64];
    bool dead = false;
    const unsigned int idx_ = blockIdx.x * blockDim.x + threadIdx.x;
    float v_ = 0.0f;
    if (idx_ < (unsigned int)x_len_) {
        v_ = x_[idx_];
    }
    tile_[threadIdx.x] = v_;
    __syncthreads();
    for (unsigned int half_ = 32u; half_ > 0u; half_ = half_ >> 1) {
        if (!dead) {
            if (threadIdx.x < half_) {
                const unsigned int t_ = threadIdx.x + half_;
                const float tile_i_ = tile_[threadIdx.x];
                if (t_ >= 64u) {
                    dead = true;
                    report_fault_(fault_record, site_base + 0u, (unsigned long long)t_, 64ull);
                } else {
                    tile_[threadIdx.x] = tile_i_ + tile_[t_];
                }
            }
        }
        __syncthreads();
    }
    if (dead) {
        return;
    }
    if (threadIdx.x == 0u) {
        if (0ull >= total_len_) {
            dead = true;
            report_fault_(fault_record, site_base + 1u, 0ull, total_len_);
            return;
        }
        atomicAdd(&total_[0], tile_[0]);
    }
}
