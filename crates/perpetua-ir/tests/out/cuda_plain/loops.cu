extern "C" __global__ void loops(const unsigned int* x, unsigned int* out, unsigned int n)
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
            const unsigned int x_i = x[i + j];
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
    out[threadIdx.x] = k;
}
