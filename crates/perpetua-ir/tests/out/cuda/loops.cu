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

extern "C" __global__ void loops(const unsigned int* x, unsigned long long x_len, unsigned int* out, unsigned long long out_len, unsigned int n, unsigned int* fault_record, unsigned int site_base)
{
    unsigned int sum = 0u;
    unsigned int i = 0u;
    while (i < n) {
        unsigned int j = 0u;
        bool leave = false;
        bool next = false;
        for (; j < n; j += 1u) {
            if (i == j) {
                continue;
            }
            const unsigned int t = i + j;
            if ((unsigned long long)t >= x_len) {
                report_fault(fault_record, site_base + 0u, (unsigned long long)t, x_len);
                return;
            }
            const unsigned int x_i = x[t];
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
    unsigned int k = sum;
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
    if ((unsigned long long)threadIdx.x >= out_len) {
        report_fault(fault_record, site_base + 1u, (unsigned long long)threadIdx.x, out_len);
        return;
    }
    out[threadIdx.x] = k;
}
