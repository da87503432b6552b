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

extern "C" __global__ void loops_(const unsigned int* x_, unsigned long long x_len_, unsigned int* out_, unsigned long long out_len_, unsigned int n_, unsigned int* fault_record, unsigned int site_base)
{
    unsigned int sum_ = 0u;
    unsigned int i_ = 0u;
    while (i_ < n_) {
        unsigned int j_ = 0u;
        bool leave_ = false;
        bool next_ = false;
        for (; j_ < n_; j_ += 1u) {
            if (i_ == j_) {
                continue;
            }
            const unsigned int t_ = i_ + j_;
            if ((unsigned long long)t_ >= x_len_) {
                report_fault_(fault_record, site_base + 0u, (unsigned long long)t_, x_len_);
                return;
            }
            const unsigned int x_i_ = x_[t_];
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
    unsigned int k_ = sum_;
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
    if ((unsigned long long)threadIdx.x >= out_len_) {
        report_fault_(fault_record, site_base + 1u, (unsigned long long)threadIdx.x, out_len_);
        return;
    }
    out_[threadIdx.x] = k_;
}
