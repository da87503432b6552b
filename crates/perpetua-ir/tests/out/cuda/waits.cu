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

extern "C" __global__ void waits_(const unsigned int* x_, unsigned long long x_len_, unsigned int* out_, unsigned long long out_len_, unsigned int* fault_record, unsigned int site_base)
{
    __shared__ unsigned int turns_[2];
    __shared__ unsigned int a_lane_is_dead_;
    bool dead = false;
    a_lane_is_dead_ = 0u;
    __syncthreads();
    const bool test_ = threadIdx.x == 0u;
    if (test_) {
        turns_[0] = 0u;
    }
    unsigned int n_ = 0u;
    for (;;) {
        const unsigned int t_ = n_ + 1u;
        n_ = t_;
        if (!dead) {
            if (test_ && t_ == 3u) {
                turns_[0] = 5u;
            }
        }
        if (dead) {
            a_lane_is_dead_ = 1u;
        }
        __syncthreads();
        const unsigned int t1_ = threadIdx.x + t_;
        const bool test1_ = (unsigned long long)t1_ >= x_len_;
        if (test1_) {
            dead = true;
            report_fault_(fault_record, site_base + 0u, (unsigned long long)t1_, x_len_);
        }
        unsigned int guarded_ = 0u;
        if (!test1_) {
            guarded_ = x_[t1_];
        }
        const unsigned int a_lane_is_dead_i_ = a_lane_is_dead_;
        const unsigned int turns_i_ = turns_[0];
        __syncthreads();
        if (a_lane_is_dead_i_ != 0u) {
            return;
        }
        if (t_ == turns_i_) {
            break;
        }
        if ((unsigned long long)threadIdx.x >= out_len_) {
            dead = true;
            report_fault_(fault_record, site_base + 1u, (unsigned long long)threadIdx.x, out_len_);
        }
        if (!dead) {
            out_[threadIdx.x] = guarded_;
        }
    }
}
