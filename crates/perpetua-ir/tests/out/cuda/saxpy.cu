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

extern "C" __global__ void saxpy_(float a_, const float* x_, unsigned long long x_len_, float* y_, unsigned long long y_len_, int n_, unsigned int* fault_record, unsigned int site_base)
{
    const int idx_ = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx_ >= n_) {
        return;
    }
    if ((unsigned long long)idx_ >= x_len_) {
        report_fault_(fault_record, site_base + 0u, (unsigned long long)idx_, x_len_);
        return;
    }
    if ((unsigned long long)idx_ >= y_len_) {
        report_fault_(fault_record, site_base + 1u, (unsigned long long)idx_, y_len_);
        return;
    }
    y_[idx_] = a_ * x_[idx_] + y_[idx_];
}
